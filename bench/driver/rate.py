# SPDX-License-Identifier: BSD-3-Clause
"""The rate of small messages, with one tag and with several."""

import by_size
import columns
import report
import tuples
import virtual
from rounds import program_task, take_turns

SIZES = "1-1K"
QUICK_SIZES = "1,8,64,256,1K"
TAGS = (1, 16)

# The least ratio to these columns.
TARGETS = {"ob1-openib": 1.5, "ucx-rc_v": 1.0}


def _task(settings, column):
    # During the warm-up, connections and tuples are set up, and processes that only start the job end.
    arguments = ["--sizes", QUICK_SIZES if settings.quick else SIZES, "--tags", ",".join(map(str, TAGS))]
    arguments += virtual.effort(
        settings,
        real=["--ms", "30" if settings.quick else "60", "--warm-up", "1000"],
        virtual=["--ms", "2", "--warm-up", "50", "--most", "100"],
        exact=["--ms", "1", "--warm-up", "20", "--most", "10"],
    )
    arguments += (["--samples"] if settings.samples else []) + settings.arguments
    return program_task(
        settings,
        column,
        "bandwidth",
        arguments,
        lambda result: f"{result['tags']} tags, {report.size_text(result['bytes'])}: {result['million_per_s']:.2f} million/s",
    )


def _title(tags):
    return f"Million messages per second, {tags} {'tag' if tags == 1 else 'tags in turn'}"


def _values(tasks, tags):
    return by_size.collect(
        tasks, lambda results: ((one["bytes"], one["million_per_s"]) for one in results if one["tags"] == tags)
    )


def _judge(values):
    report.print_targets("tupleq")
    for tags, found in values.items():
        for rival, least in TARGETS.items():
            text = f"{tags} {'tag' if tags == 1 else 'tags'}: at least {least} x {rival}"
            by_size.judge(text, found, rival, lambda ratio, least=least: ratio >= least)


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    if settings.tuples:
        return tuples.main(settings)
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, columns.DEVICE + columns.SHARED_MEMORY)]
    take_turns(tasks, settings.rounds)
    counts = sorted({one["tags"] for task in tasks for results in task.results for one in results})
    values = {tags: _values(tasks, tags) for tags in counts}
    for tags, found in values.items():
        by_size.print_table(_title(tags), tasks, found)
    report.print_skipped(tasks)
    _judge(values)
    stem = report.write_json(settings, "rate", tasks)
    by_size.plot(
        stem, tasks, [(_title(tags), found) for tags, found in values.items()], "set yrange [0:*]; set key top right"
    )
    return tasks
