# SPDX-License-Identifier: BSD-3-Clause
"""The picture of README.md: the time that is left for computing, by size, on both sides."""

import json
import os

import overlap
import report
from rounds import Task, take_turns

COLUMNS = "tupleq,rput,rget,ob1-openib,ucx-rc_v"
# The smallest size that is shown. All libraries copy shorter messages, in a microsecond, so there is nothing to overlap.
LEAST = 8 << 10


def _spread(availability, ours):
    """Returns the largest spread of a point of tupleq, or of the other columns."""
    return max(
        (
            report.spread(values)
            for side in overlap.SIDES
            for size, by_column in availability[side].items()
            if size >= LEAST
            for name, values in by_column.items()
            if (name == "tupleq") == ours
        ),
        default=0,
    )


def _measure(settings):
    """Measures all rounds. Returns the tasks, the machine and softhca's options."""
    report.print_head(settings)
    settings.columns = settings.columns or COLUMNS
    tasks = overlap.tasks(settings)
    take_turns(tasks, settings.rounds)
    report.write_json(settings, "picture", tasks)
    return tasks, report.machine(), settings.softhca_options


def _read(path):
    """Reads an earlier run of this part, or of overlap, from its JSON file. Returns the tasks, the machine and softhca's options."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    settings = data["settings"]
    if data["benchmark"] not in ("overlap", "picture"):
        raise SystemExit(f"{path} has figures of {data['benchmark']}, and the picture shows those of overlap")
    if settings["softhca_options"] is None or settings.get("virtual") or settings.get("within"):
        raise SystemExit(f"{path} was not measured between softhca's nodes in real time, which the picture shows")
    tasks = []
    for run in data["runs"]:
        task = Task(run["name"], None)
        task.results, task.skipped = run["rounds"], run["skipped"]
        tasks.append(task)
    return tasks, data["machine"], settings["softhca_options"]


def _link(options):
    """Returns the value of the last --link among options of softhca run."""
    words = options.split()
    values = [value for word, value in zip(words, words[1:]) if word == "--link"]
    return values[-1] if values else "off"


def _draw(path, tasks, machine, options):
    availability = overlap.availability(tasks)
    names = [task.name for task in tasks if task.results]
    sizes = [1 << power for power in range(13, 23, 3)]
    rounds = max(len(task.results) for task in tasks)
    caption = (
        f"measured on softhca, link model: {_link(options)}; {machine['cpu']}, {machine['cpus']} CPUs; "
        f"medians of {rounds} rounds, "
        f"spread at most {_spread(availability, True):.1f} points (tupleq), {_spread(availability, False):.1f} (others)"
    )
    script = [
        "set terminal svg size 900,380 font 'sans,11' background 'white'",
        f"set output '{path}'",
        f"set multiplot layout 1,{len(overlap.SIDES)} title \"{caption}\" noenhanced font 'sans,10'",
        "set logscale x 2; set xlabel 'message size'; set yrange [0:105]; set ylabel 'left for computing (%)'",
        f"set xtics ({', '.join(f'{chr(39)}{report.size_text(size)}{chr(39)} {size}' for size in sizes)}); set grid; set key bmargin center horizontal",
    ]
    for side, title in overlap.SIDES.items():
        script.append(f"set title '{title}'")
        script.append("plot " + ", ".join(f"'-' with linespoints title '{name}' noenhanced lw 2 pt 7 ps 0.4" for name in names))
        for name in names:
            for size, by_column in availability[side].items():
                if size >= LEAST and name in by_column:
                    script.append(f"{size} {report.median(by_column[name]):.1f}")
            script.append("e")
    failure = report.gnuplot("\n".join([*script, "unset multiplot", ""]))
    if failure:
        raise SystemExit(f"the picture can't be drawn: {failure}")
    print(f"Picture: {os.path.relpath(path)}")


def main(settings):
    """Measures, or reads an earlier run, and draws the picture. Returns the tasks."""
    tasks, machine, options = _read(settings.source) if settings.source else _measure(settings)
    if not any(task.results for task in tasks):
        raise SystemExit("nothing could be measured, so the picture stays as it is")
    report.print_skipped(tasks)
    path = settings.output or os.path.join(settings.top, "doc", "overlap.svg")
    _draw(path, tasks, machine, options)
    return tasks
