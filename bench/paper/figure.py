# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the figures: running columns in turn, and writing table, plot and JSON under one name."""

import by_size
import jobs
import report
from rounds import Task, take_turns


class Turn:
    """A turn of a column that has several cases. A case that fails leaves the others as they are."""

    def __init__(self, task, show):
        self.task, self.show = task, show
        self.round = len(task.results) + 1

    def seed(self, settings):
        """Returns the seed by which the prices of verbs vary in this round; 0: they don't."""
        return self.round if settings.seeds else 0

    def case(self, text, function):
        """Returns the results of a case, function(), or an empty list if the case has failed, now or in a round before."""
        if text in self.task.lost:
            return []
        self.show(text)
        try:
            return function()
        except jobs.Failed as failure:
            self.task.lost[text] = str(failure)
            self.task.output = failure.output
            return []


def chosen(settings, cases):
    """Returns the cases that --cases names; all of them without it. `cases`: {name: case}."""
    return [case for name, case in cases.items() if not settings.cases or name in settings.cases]


def measure(settings, columns, function):
    """Runs function(column, turn) once per round for each column. Returns the tasks."""
    tasks = []
    for column in columns:
        task = Task(column.name, None, column.own)
        task.function = lambda show, task=task, column=column: function(column, Turn(task, show))
        tasks.append(task)
    take_turns(tasks, settings.rounds)
    return tasks


def print_table(title, tasks, values, label=str, paper=None):
    """Prints a line per place and a column per task; `paper`: {place: text} of the paper's number, a last column."""
    names = [task.name for task in tasks if task.results]
    rows = []
    for place, by_column in values.items():
        row = [label(place), *(report.cell(by_column.get(name)) for name in names)]
        rows.append([*row, (paper or {}).get(place, "")] if paper else row)
    report.table(title, ["", *names, *(["paper"] if paper else [])], rows)


def print_matched(tasks, pick, label=str):
    """Prints how many messages of the whole run the adapters matched. `pick` returns pairs of place and result of cluster.run_matched()."""
    values = by_size.collect(
        tasks, lambda results: ((place, 100 * one["matched"]) for place, one in pick(results) if "matched" in one)
    )
    print_table("Messages that the adapters matched (%)", tasks, values, label)


def plot(stem, panels, axes, size=(750, 600)):
    """Draws graphs side by side. A panel is a title, the names of the columns, {place: {column: [value]}}, and lines of gnuplot
    that follow as further curves: pairs of title and formula."""
    panels = [panel for panel in panels if panel[2]]
    if not panels:
        return
    script = [
        f"set terminal pngcairo size {size[0] * len(panels)},{size[1]} font 'sans,11'",
        f"set output '{stem}.png'",
        f"set multiplot layout 1,{len(panels)}",
        f"{axes}; set grid",
    ]
    for title, names, values, curves in panels:
        script.append(f"set title '{title}'")
        lines = report.error_lines(names, values)
        lines[0] += "".join(f", {formula} title '{name}' with lines dashtype 2 lc 'black'" for name, formula in curves)
        script += lines
    report.draw(stem, [*script, "unset multiplot"])


def ran(tasks):
    """Returns the names of the columns that have results."""
    return [task.name for task in tasks if task.results]
