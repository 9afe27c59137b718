# SPDX-License-Identifier: BSD-3-Clause
"""Queues and memory of a process, by the number of its peers and of its tags."""

import json
import os
import signal

import columns
import jobs
import report
from rounds import Task, take_turns

PREFIX = "pml_tupleq_"

# The series: the number of ranks, and the options of the program.
SERIES = {
    "peers": (16, ("--peers", "0,1,3,7,15")),
    "tags": (2, ("--tags", "1,16,256,1024,4096")),
}
QUICK_SERIES = {
    "peers": (8, ("--peers", "0,1,7")),
    "tags": (2, ("--tags", "1,64,1024")),
}


def _kib(value):
    return f"{value / 1024:.0f}"


# Title, name, and how the figure is shown. The adapter knows the first ones of all columns; the pml counts the others.
FIGURES = (
    ("Queue pairs", "qps", str),
    ("Shared receive queues", "srqs", str),
    ("Completion queues", "cqs", str),
    ("Memory registered at the adapter (KiB)", "pinned", _kib),
    ("Of this, users' buffers (KiB)", PREFIX + "registered_bytes", _kib),
    ("Of this, control buffers and copies of the library's own (KiB)", PREFIX + "own_bytes", _kib),
    ("Tuple queues in use", PREFIX + "tuples", str),
    ("Connections as sender", PREFIX + "lanes", str),
    ("Memory resident (KiB)", "resident", _kib),
)
GRAPHS = 3
COUNTERS = [figure for _, figure, _ in FIGURES if figure.startswith(PREFIX)]


def _at_adapter(ranks):
    """Returns the objects of each process in the fabric. A shared queue pair counts for the process that made it."""
    said = json.loads(jobs.run(["softhca", "stat", "--json", "--objects"], 20))
    found = {pid: {"qps": 0, "srqs": 0, "cqs": 0, "mrs": 0} for pid in ranks}
    for process in said["procs"]:
        if process["pid"] in found:
            found[process["pid"]]["pinned"] = process["pinned"]
    for hca in said["hcas"]:
        for kind in ("qps", "srqs", "cqs", "mrs"):
            for thing in hca[kind]:
                if thing["pid"] in found:
                    found[thing["pid"]][kind] += 1
    return found


class _Looker:
    """Looks at the ranks when all of them have finished a step, and starts the next step."""

    def __init__(self, ranks, adapter, show):
        self.ranks, self.adapter, self.show = ranks, adapter, show
        self.said, self.steps = [], []

    def hear(self, line):
        """Takes a rank's line. Without an adapter ranks don't wait, so they may be in different steps."""
        self.show(f"{line['peers']} peers, {line['tags']} tags")
        self.said.append(line)
        step = [one for one in self.said if (one["peers"], one["tags"]) == (line["peers"], line["tags"])]
        if len(step) < self.ranks:
            return
        at_adapter = _at_adapter([one["pid"] for one in step]) if self.adapter else {}
        processes = [
            {"rank": one["rank"], "resident": one["resident"], **at_adapter.get(one["pid"], {}), **one["counters"]}
            for one in sorted(step, key=lambda one: one["rank"])
        ]
        self.steps.append({"peers": line["peers"], "tags": line["tags"], "processes": processes})
        for one in step if self.adapter else ():
            os.kill(one["pid"], signal.SIGUSR1)


def _task(settings, column):
    adapter = not settings.hostfile
    wait = ("--wait",) if adapter else ()

    def run(show):
        results = {}
        for series, (ranks, arguments) in (QUICK_SERIES if settings.quick else SERIES).items():
            looker = _Looker(ranks, adapter, show)
            command = jobs.mpirun(
                settings, column, "memory", *arguments, "--counters", ",".join(COUNTERS), *wait, ranks=ranks
            )
            jobs.run_json(command, settings.timeout, looker.hear)
            results[series] = looker.steps
        return results

    return Task(column.name, run, column.own)


def _most(step, figure):
    """Returns the largest figure of any process, or None if no process has that figure."""
    values = [process[figure] for process in step["processes"] if figure in process]
    return max(values, default=None)


def _figures(tasks, series):
    """Returns {figure: {number: {column: value}}}."""
    found = {figure: {} for _, figure, _ in FIGURES}
    for task in tasks:
        for step in (step for results in task.results for step in results[series]):
            for figure, by_number in found.items():
                value = _most(step, figure)
                if value is not None:
                    by_number.setdefault(step[series], {})[task.name] = value
    return found


def _print_tables(tasks, series, figures):
    names = [task.name for task in tasks if task.results]
    for title, figure, text in FIGURES:
        rows = [
            [f"{number} {series}", *(text(by_column[name]) if name in by_column else "-" for name in names)]
            for number, by_column in sorted(figures[figure].items())
        ]
        report.table(f"{title}, by {series}", ["", *names], rows)


def _plot_one(title, text, by_number):
    """Returns the script of a graph with a line per column that has the figure."""
    names = sorted({name for by_column in by_number.values() for name in by_column}, key=list(columns.COLUMNS).index)
    script = [f"set title \"{title}\""]
    script.append("plot " + ", ".join(f"'-' with linespoints title '{name}' noenhanced lw 2" for name in names))
    for name in names:
        points = [(number, by_column[name]) for number, by_column in sorted(by_number.items()) if name in by_column]
        script += [*(f"{number} {text(value)}" for number, value in points), "e"]
    return script


def _plot(stem, by_series):
    """Draws graphs of the first figures that are known, by peers and by tags."""
    shown = [
        (title, figure, text)
        for title, figure, text in FIGURES
        if figure != "cqs" and all(figures[figure] for figures in by_series.values())
    ][:GRAPHS]
    if not shown:
        return
    script = [
        f"set terminal pngcairo size {500 * len(shown)},{500 * len(by_series)} font 'sans,11'",
        f"set output '{stem}.png'",
        f"set multiplot layout {len(by_series)},{len(shown)}",
        "set yrange [0:*]; set grid; set key below",
    ]
    for series, figures in by_series.items():
        script.append(f"set xlabel '{series}'; {'set' if series == 'tags' else 'unset'} logscale x")
        for title, figure, text in shown:
            script += _plot_one(title, text, figures[figure])
    report.draw(stem, [*script, "unset multiplot"])


def main(settings):
    """Looks at the processes, prints and writes all figures. Returns the tasks."""
    settings.rounds = 1  # nothing is timed
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, [*columns.DEVICE, *columns.SHARED_MEMORY])]
    take_turns(tasks, 1)
    print("\nFigures of the process that has most:")
    by_series = {series: _figures(tasks, series) for series in SERIES}
    for series, figures in by_series.items():
        _print_tables(tasks, series, figures)
    report.print_skipped(tasks)
    stem = report.write_json(settings, "memory", tasks)
    _plot(stem, by_series)
    return tasks
