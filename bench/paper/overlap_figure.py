# SPDX-License-Identifier: BSD-3-Clause
"""TupleQ, figures 5 (a) and 5 (b): availability and overhead by size, two ranks."""

import by_size
import cluster
import columns
import figure
import report

NAME = "overlap"
TITLE = "TupleQ, figures 5 (a) and (b): host availability and overhead, two ranks"
SIDES = {"send": "Send side", "recv": "Receive side"}
LEAST = 99.0
# The figure's curves, as its text describes them: there are no numbers.
PAPER = {1 << n: "tupleq ~100, rput, rget ~0" if 1 << n >= 8 << 10 else "tupleq ~100" for n in range(23)}


def _run(settings, column, turn):
    arguments = ["--sizes", "1K,16K,256K" if settings.quick else "1-4M"]
    if settings.cpu:
        arguments += ["--step-ms", "2", "--overhead-ms", "16", "--most", "100"]
    else:
        arguments += ["--sleep", "--step-ms", "1", "--overhead-ms", "1", "--least", "3", "--most", "5"]
    turn.show("availability")
    return cluster.run(settings, cluster.Cluster(2, 2), column, "overlap", *arguments)


def _judge(side, values):
    short = {size: report.median(by["tupleq"]) for size, by in values.items() if "tupleq" in by}
    short = {size: value for size, value in short.items() if value < LEAST}
    detail = ", ".join(f"{report.size_text(size)}: {value:.1f}" for size, value in short.items())
    report.judge(f"{side}: tupleq at least {LEAST:.0f} % at each size", not short if values else None, detail)


def main(settings):
    """Measures, prints and draws the figure. Returns the tasks."""
    tasks = figure.measure(settings, columns.choose(settings.columns, columns.DEVICE), lambda column, turn: _run(settings, column, turn))
    panels = []
    for side, title in SIDES.items():
        for field, factor, what in (("availability", 100, "availability (%)"), ("overhead_us", 1, "overhead (us)")):
            values = by_size.collect(
                tasks, lambda results: ((one["bytes"], factor * one[field]) for one in results if one["side"] == side)
            )
            figure.print_table(f"{title}: {what}", tasks, values, report.size_text, PAPER if field == "availability" else None)
            if field == "availability":
                _judge(title, values)
                panels.append((title, figure.ran(tasks), values, []))
    stem = report.write_json(settings, "paper-overlap", tasks)
    figure.plot(stem, panels, "set logscale x 2; set xlabel 'message size (B)'; set ylabel 'availability (%)'; set yrange [-5:105]; set key bottom right")
    return tasks
