# SPDX-License-Identifier: BSD-3-Clause
"""One-sided operations beside the figures of perftest on the same adapter."""

import columns
import perftest
import report
import virtual
from rounds import Task, program_task, take_turns

BOUND = "perftest RC"

# By field of the program's output: the title of the table, and the bound of the target as a ratio to perftest's figure.
MEASURES = {
    "put_us": ("8 B put and flush (us)", 1.3),
    "get_us": ("8 B get and flush (us)", 1.3),
    "fetch_add_us": ("8 B fetch-and-add and flush (us)", 1.3),
    "gb_per_s": ("1 MiB puts, one way (GB/s)", 0.95),
}
# perftest's figure for each, as the targets name it.
REFERENCES = {
    "put_us": "a round trip of ib_write_lat",
    "get_us": "ib_read_lat",
    "fetch_add_us": "ib_atomic_lat",
    "gb_per_s": "ib_write_bw",
}


def _perftest_task(settings):
    latency_n, bandwidth_n = virtual.effort(
        settings,
        real=["5000", "1000"] if settings.quick else ["20000", "5000"],
        virtual=["1000", "200"],
        exact=["100", "100"],
    )

    def run(show):
        programs = {
            "write": ("ib_write_lat", "-s", "8", "-n", latency_n),
            "get_us": ("ib_read_lat", "-s", "8", "-n", latency_n),
            "fetch_add_us": ("ib_atomic_lat", "-A", "FETCH_AND_ADD", "-n", latency_n),
            "gb_per_s": ("ib_write_bw", "-s", str(1 << 20), "-n", bandwidth_n, "--report_gbits"),
        }
        printed = {}
        for name, command in programs.items():
            show(command[0])
            printed[name] = perftest.figures(settings, *command)
        # In virtual time most round trips also take the rest of a turn, because ib_write_lat waits without a call.
        half = perftest.least if settings.virtual else perftest.typical
        return {
            "put_us": 2 * half(printed["write"]),
            "get_us": perftest.typical(printed["get_us"]),
            "fetch_add_us": perftest.typical(printed["fetch_add_us"]),
            "gb_per_s": perftest.gigabytes(printed["gb_per_s"]),
            "printed": printed,
        }

    return Task(BOUND, run)


def _mpi_task(settings, column):
    arguments = virtual.effort(
        settings, real=["--ms", "50" if settings.quick else "150"], virtual=["--ms", "2"], exact=["--ms", "1"]
    )
    task = program_task(settings, column, "rma", arguments, lambda result: f"put {report.number(result['put_us'])} us")
    return Task(column.name, lambda show: task.function(show)[0], column.own)


def _values(task, field):
    return [result[field] for result in task.results]


def _ratios(task, bound, field):
    return report.ratios(_values(task, field), _values(bound, field)) if bound else []


def _print_table(tasks, bound, field):
    rows = [
        [task.name, report.cell(_values(task, field)), report.cell(_ratios(task, bound, field))]
        for task in tasks
        if task.results
    ]
    report.table(MEASURES[field][0], ["", "median", f"ratio to {REFERENCES[field]}"], rows)


def _judge(tasks, bound):
    report.print_targets()
    for task in tasks:
        if not task.own:
            continue
        for field, (title, limit) in MEASURES.items():
            ratios = _ratios(task, bound, field)
            value = report.median(ratios) if ratios else None
            is_rate = field == "gb_per_s"
            text = f"{task.name}: {title}, at {'least' if is_rate else 'most'} {limit} x {REFERENCES[field]}"
            met = value is not None and (value >= limit if is_rate else value <= limit)
            report.judge(text, met if ratios else None, f"{value:.3f}" if ratios else "")


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    report.print_head(settings)
    chosen = columns.choose(settings.columns, columns.ONE_SIDED, columns.ONE_SIDED)
    perftests = _perftest_task(settings)
    tasks = [perftests, *(_mpi_task(settings, column) for column in chosen)]
    take_turns(tasks, settings.rounds)
    bound = perftests if perftests.results else None
    for field in MEASURES:
        _print_table(tasks, bound, field)
    report.print_skipped(tasks)
    _judge(tasks, bound)
    report.write_json(settings, "rma", tasks)
    return tasks
