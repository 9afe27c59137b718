# SPDX-License-Identifier: BSD-3-Clause
"""The rate of long messages against the number of tags, each of which is a tuple with a queue of its own."""

import columns
import jobs
import report
import virtual
from rounds import Task, take_turns

TAGS = "64,256,1024,2048,4096,8192"
QUICK_TAGS = "64,1024,8192"
SIZE = "32K"  # above pml_tupleq_eager_max: shorter messages are copied and need no queue

# A tuple asks for its queue after four messages, and has it some messages later.
PASSES = 8

# The usual columns: with a queue per tuple, and with none.
COLUMNS = ["tupleq", "rget"]

# Room for a queue per tag.
ROOM = columns.mca(pml_tupleq_tuples="16384", pml_tupleq_tuple_records="16384")

# The messages of a window: as many as in the rest of the part; or one, whose answer shows how long the message takes.
WINDOWS = {64: "Million messages per second", 1: "Time of a message and its answer (us)"}


def _task(settings, column):
    arguments = ["--sizes", SIZE, "--tags", QUICK_TAGS if settings.quick else TAGS, "--passes", str(PASSES)]
    arguments += virtual.effort(
        settings, real=["--ms", "60"], virtual=["--ms", "2", "--most", "100"], exact=["--ms", "1", "--most", "20"]
    )

    def run(show):
        results = []
        for window in WINDOWS:
            results += jobs.run_json(
                jobs.mpirun(
                    settings, column, "bandwidth", *arguments, "--window", str(window), *settings.arguments, extra=ROOM
                ),
                settings.timeout,
                lambda result: show(f"{result['tags']} tags, window {result['window']}: {result['window_us']:.2f} us"),
            )
        return results

    return Task(column.name, run, column.own)


def _values(tasks, window):
    """Returns {tags: {column: [value per round]}}."""
    field = "window_us" if window == 1 else "million_per_s"
    found = {}
    for task in tasks:
        for results in task.results:
            for one in results:
                if one["window"] == window:
                    found.setdefault(one["tags"], {}).setdefault(task.name, []).append(one[field])
    return dict(sorted(found.items()))


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, COLUMNS)]
    take_turns(tasks, settings.rounds)
    names = [task.name for task in tasks]
    for window, title in WINDOWS.items():
        rows = [
            [str(tags), *(report.cell(by_column.get(name)) for name in names)]
            for tags, by_column in _values(tasks, window).items()
        ]
        report.table(f"{title}, {SIZE}iB, by the number of tags in turn", ["", *names], rows)
    report.print_skipped(tasks)
    report.write_json(settings, "tuples", tasks)
    return tasks
