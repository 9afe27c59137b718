# SPDX-License-Identifier: BSD-3-Clause
"""Latency, and bandwidth one way and both ways, by size."""

import by_size
import columns
import jobs
import report
from rounds import Task, take_turns

SIZES = "1-4M"
QUICK_SIZES = "1,64,1K,8K,64K,512K,4M"
RIVALS = ("ob1-openib", "ucx-rc_v")
SLACK = 1.05

# Figures: the program and its arguments, the field of its output, the title of the table.
MEASURES = {
    "latency": (("latency",), "half_us", "Latency: half a round trip (us)"),
    "one way": (("bandwidth",), "gb_per_s", "Bandwidth, one way (GB/s)"),
    "both ways": (("bandwidth", "--both-ways"), "gb_per_s", "Bandwidth, both ways together (GB/s)"),
}


def _task(settings, column):
    effort = ["--ms", "15" if settings.quick else "50", "--least", "5"] + (["--samples"] if settings.samples else [])
    sizes = ["--sizes", QUICK_SIZES if settings.quick else SIZES]

    def run(show):
        results = {}
        for name, (program, field, _) in MEASURES.items():
            command = jobs.mpirun(settings, column, *program, *sizes, *effort)
            results[name] = jobs.run_json(
                command,
                settings.timeout,
                lambda result, name=name, field=field: show(
                    f"{name}, {report.size_text(result['bytes'])}: {report.number(result[field])}"
                ),
            )
        return results

    return Task(column.name, run, column.own)


def _values(tasks, name):
    field = MEASURES[name][1]
    return by_size.collect(tasks, lambda results: ((one["bytes"], one[field]) for one in results[name]))


def _judge(values):
    report.print_targets("tupleq")
    for name, found in values.items():
        for rival in RIVALS:
            if name == "latency":
                by_size.judge(f"latency at most {SLACK} x {rival}", found, rival, lambda ratio: ratio <= SLACK)
            else:
                by_size.judge(f"{name} at least {rival} / {SLACK}", found, rival, lambda ratio: ratio >= 1 / SLACK)


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, columns.DEVICE + columns.SHARED_MEMORY)]
    take_turns(tasks, settings.rounds)
    values = {name: _values(tasks, name) for name in MEASURES}
    for name, found in values.items():
        by_size.print_table(MEASURES[name][2], tasks, found)
    report.print_skipped(tasks)
    _judge(values)
    stem = report.write_json(settings, "bandwidth", tasks)
    panels = [(MEASURES[name][2], found) for name, found in values.items()]
    by_size.plot(stem, tasks, panels, "set logscale y; set key top left")
    return tasks
