# SPDX-License-Identifier: BSD-3-Clause
"""A 3-D Fourier transform whose transposes overlap with the transforms."""

import os

import columns
import jobs
import report
import virtual
from rounds import Task, take_turns

DEFAULT = ["tupleq", "tupleq-libnbc", "ob1-openib", "ucx-rc_v"]
# Points of an edge: a multiple of the ranks.
POINTS = {64: 256}
USUAL_POINTS = 128
QUICK_POINTS = 64
# The processor's speed where computing takes no time. The link then takes about a third of a step.
GFLOPS = "5.5"
# The part of the best other column's time that tupleq may take.
TARGET = 0.85
# Without calls of MPI_Testall, and with.
WAYS = {"": [], ", testing": ["--tests"]}


def _points(settings):
    if settings.quick:
        return QUICK_POINTS
    return POINTS.get(settings.ranks, USUAL_POINTS)


def _arguments(settings):
    arguments = ["--points", str(_points(settings))]
    arguments += virtual.effort(
        settings,
        real=["--ms", "300" if settings.quick else "2000"],
        virtual=["--ms", "20", "--least", "4", "--most", "20", "--warm-up", "16"],
        exact=["--ms", "1", "--least", "3", "--most", "3", "--warm-up", "16"],
    )
    if virtual.is_exact(settings):
        arguments += ["--gflops", GFLOPS]
    return arguments + settings.arguments


def _task(settings, column):
    def run(show):
        if not os.access(os.path.join(settings.programs, "fft", "fft"), os.X_OK):
            raise jobs.Failed("fft wasn't built; install libfftw3-dev and build again")
        results = {}
        for way, options in WAYS.items():
            show(f"fft{way}")
            command = jobs.mpirun(settings, column, "fft/fft", *_arguments(settings), *options)
            results[way] = jobs.run_json(command, settings.timeout)[0]
        return results

    return Task(column.name, run, column.own)


def _values(task, way, field):
    return [results[way][field] for results in task.results]


def _print_table(tasks):
    base = next((task for task in tasks if task.name == "tupleq" and task.results), None)
    rows = []
    for task in tasks:
        for way in WAYS if task.results else ():
            times = _values(task, way, "slowest_us")
            ratio = report.ratios(times, _values(base, "", "slowest_us")) if base else []
            rows.append([task.name + way, report.cell(times), report.cell(_values(task, way, "mpi_us")), report.cell(ratio)])
    report.table("A step, forward and backward, on the slowest rank", ["", "time (us)", "in MPI (us), mean", "ratio to tupleq"], rows)


def _best(task):
    """Returns the better of the ways of a column."""
    return min(report.median(_values(task, way, "slowest_us")) for way in WAYS)


def _judge(tasks):
    report.print_targets("tupleq")
    own = next((task for task in tasks if task.name == "tupleq" and task.results), None)
    for task in tasks:
        if task.name == "tupleq" or not task.results or not own:
            continue
        ratio = _best(own) / _best(task)
        report.judge(f"at most {TARGET} x {task.name}, each in its better way", ratio <= TARGET, f"{ratio:.3f}")


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, DEFAULT)]
    take_turns(tasks, settings.rounds)
    ran = [task for task in tasks if task.results]
    if ran:
        one = ran[0].results[0][""]
        print(f"\n{one['n']}^3 points, {one['ranks']} ranks, {one['pieces']} pieces, {report.size_text(one['bytes'])} to each rank in a piece")
    _print_table(tasks)
    report.print_skipped(tasks)
    _judge(tasks)
    report.write_json(settings, "fft", tasks)
    return tasks
