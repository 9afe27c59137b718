# SPDX-License-Identifier: BSD-3-Clause
"""Small messages per time, of one tag and of several."""

import by_size
import columns
import jobs
import report
from rounds import Task, take_turns

SIZES = "1-1K"
QUICK_SIZES = "1,8,64,256,1K"
TAGS = (1, 16)

# The least ratio to each of them.
TARGETS = {"ob1-openib": 1.5, "ucx-rc_v": 1.0}


def _task(settings, column):
    # Many windows before the first that counts: connections and tuples are set up, and processes that start are gone.
    arguments = ["--sizes", QUICK_SIZES if settings.quick else SIZES, "--tags", ",".join(map(str, TAGS))]
    arguments += ["--ms", "30" if settings.quick else "60", "--warm-up", "1000"]
    arguments += (["--samples"] if settings.samples else []) + settings.arguments
    command = jobs.mpirun(settings, column, "bandwidth", *arguments)

    def run(show):
        return jobs.run_json(
            command,
            settings.timeout,
            lambda o: show(f"{o['tags']} tags, {report.size_text(o['bytes'])}: {o['million_per_s']:.2f} million/s"),
        )

    return Task(column.name, run, column.own)


def _title(tags):
    return f"Million messages per second, {tags} {'tag' if tags == 1 else 'tags in turn'}"


def _values(tasks, tags):
    return by_size.collect(
        tasks, lambda objects: ((o["bytes"], o["million_per_s"]) for o in objects if o["tags"] == tags)
    )


def _judge(values):
    print("\nTargets for tupleq")
    for tags, found in values.items():
        for rival, least in TARGETS.items():
            text = f"{tags} {'tag' if tags == 1 else 'tags'}: at least {least} x {rival}"
            by_size.judge(text, found, rival, lambda ratio, least=least: ratio >= least)


def main(settings):
    """Measures, prints and writes it all. Returns the tasks."""
    report.print_head(settings)
    tasks = [_task(settings, c) for c in columns.choose(settings.columns, columns.DEVICE + columns.SHARED_MEMORY)]
    take_turns(tasks, settings.rounds)
    counts = sorted({o["tags"] for task in tasks for objects in task.results for o in objects})
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
