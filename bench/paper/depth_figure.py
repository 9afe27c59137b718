# SPDX-License-Identifier: BSD-3-Clause
"""SeaStar, figure 7: half a round trip by the number of posted receives to traverse. A library that walks a list needs CPU time,
which --cpu 0 doesn't count."""

import by_size
import cluster
import columns
import figure
import report

NAME = "depth"
TITLE = "SeaStar, figure 7: latency by traversed queue length, two ranks"
NS_PER_ENTRY = 30  # a list that SeaStar's firmware walks
DEPTHS = (0, 16, 64, 256, 1024, 2048, 4096, 8192)
QUICK_DEPTHS = (0, 64, 256)


def _run(settings, column, turn):
    depths = ",".join(map(str, QUICK_DEPTHS if settings.quick else DEPTHS))
    turn.show("depths")
    return cluster.run(settings, cluster.Cluster(2, 2), column, "depth", "--depths", depths, "--pairs", "1", "--repeats", "20")


def main(settings):
    """Measures, prints and draws the figure. Returns the tasks."""
    tasks = figure.measure(settings, columns.choose(settings.columns, columns.DEVICE), lambda column, turn: _run(settings, column, turn))
    values = by_size.collect(tasks, lambda results: ((one["depth"], report.median(one["with_us"])) for one in results))
    first = [report.median(by["tupleq"]) for place, by in values.items() if place == 0 and "tupleq" in by]
    base = first[0] if first else 0
    paper = {depth: f"+{depth * NS_PER_ENTRY / 1000:.1f}" for depth in values}
    figure.print_table("Half a round trip of 8 B (us); paper: what a walked list adds", tasks, values, lambda depth: f"{depth} posted", paper)
    stem = report.write_json(settings, "paper-depth", tasks)
    curve = [(f"{NS_PER_ENTRY} ns an entry", f"{base} + x * {NS_PER_ENTRY / 1000}")] if base else []
    figure.plot(
        stem,
        [("posted receives of other tags", figure.ran(tasks), values, curve)],
        "set xlabel 'receives to traverse'; set ylabel 'half a round trip (us)'; set yrange [0:*]; set key top left",
        (900, 600),
    )
    return tasks
