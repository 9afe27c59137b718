# SPDX-License-Identifier: BSD-3-Clause
"""The time that an exchange adds to a step that works meanwhile, by size and work."""

import by_size
import columns
import report
import virtual
from rounds import program_task, take_turns

# The sweeps of SP, class A on four ranks, send 76880 and 169136 bytes.
SIZES = "16K,76880,169136,1M"
WORK = "0,25,50,100,200,400,800,1600"
QUICK_SIZES = "169136"
QUICK_WORK = "0,50,100,200,400"


def _task(settings, column):
    arguments = ["--sizes", QUICK_SIZES if settings.quick else SIZES]
    arguments += ["--work", QUICK_WORK if settings.quick else WORK]
    arguments += virtual.effort(settings, real=[], virtual=["--most", "60"], exact=["--ms", "1", "--least", "3", "--most", "5"])
    arguments += virtual.work(settings) + settings.arguments
    return program_task(
        settings,
        column,
        "halo",
        arguments,
        lambda result: f"{report.size_text(result['bytes'])}, {result['asked_us']} us: {result['added_us']:.1f} us more",
    )


def _values(tasks):
    """Returns {size: {work: {column: [added time per round]}}}."""

    def of(size):
        return by_size.collect(
            tasks,
            lambda results: ((one["asked_us"], one["added_us"]) for one in results if one["bytes"] == size),
        )

    sizes = {one["bytes"] for task in tasks for results in task.results for one in results}
    return {size: of(size) for size in sorted(sizes)}


def _print_tables(tasks, added):
    names = [task.name for task in tasks]
    for size, by_work in added.items():
        rows = []
        for work, by_column in by_work.items():
            rows.append([f"{work} us", *(report.cell(by_column.get(name)) for name in names)])
        report.table(f"{report.size_text(size)} each way: time that a step takes beyond its work (us)", ["work", *names], rows)


def _plot(stem, tasks, added):
    """Draws a graph per size, with a line per column."""
    ran = [task.name for task in tasks if task.results]
    if not ran:
        return
    script = [
        f"set terminal pngcairo size {500 * len(added)},500 font 'sans,11'",
        f"set output '{stem}.png'",
        f"set multiplot layout 1,{len(added)}",
        "set xlabel 'work in a step (us)'; set ylabel 'step less work (us)'; set yrange [0:*]; set grid",
    ]
    for size, by_work in added.items():
        script.append(f"set title '{report.size_text(size)}'")
        script += report.error_lines(ran, by_work)
    report.draw(stem, [*script, "unset multiplot"])


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, columns.DEVICE)]
    take_turns(tasks, settings.rounds)
    added = _values(tasks)
    _print_tables(tasks, added)
    report.print_skipped(tasks)
    stem = report.write_json(settings, "halo", tasks)
    _plot(stem, tasks, added)
    return tasks
