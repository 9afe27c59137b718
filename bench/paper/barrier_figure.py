# SPDX-License-Identifier: BSD-3-Clause
"""RDMA barrier: its time from 2 to 64 processes, one on each node, and the adapters' operations; small collectives as well. Two
processes of a node would meet in shared memory, which costs CPU time alone."""

import by_size
import cluster
import columns
import figure
import report

NAME = "barrier"
TITLE = "RDMA barrier: time by number of processes"
RANKS = (2, 4, 8, 16, 32, 64)
QUICK_RANKS = (2, 4)
# The paper's best is on 32 nodes with two processes each.
PAPER = {64: "66, on 32 nodes"}
OTHERS = ("bcast", "allreduce", "reduce")
SIZES = "8,64,1K"


def _effort(n):
    return ["--least", str(n), "--most", str(n), "--warm-up", "10"]


def _operations(settings, column, ranks):
    """Returns the operations per barrier of the node that has most, from a run of n barriers and one of 2 n."""
    few, many = cluster.count(settings, cluster.Cluster(ranks, ranks), column, "collective", [_effort(10), _effort(20)])
    return max((more - less) / 10 for less, more in zip(few, many))


def _barrier(settings, column, place):
    """Returns the result of the barrier."""
    one = cluster.run(settings, place, column, "collective", *_effort(20))[0]
    operations = _operations(settings, column, place.ranks)
    return [{"ranks": place.ranks, "name": "barrier", "bytes": 0, "us": one["us"], "operations": operations}]


def _collective(settings, column, place, name):
    """Returns the results of another collective, by size."""
    measured = cluster.run(settings, place, column, "collective", *_effort(5), f"--{name}", SIZES)
    return [{"ranks": place.ranks, "name": name, "bytes": one["bytes"], "us": one["us"]} for one in measured]


def _run(settings, column, turn):
    results = []
    for ranks in QUICK_RANKS if settings.quick else RANKS:
        place = cluster.Cluster(ranks, ranks)
        results += turn.case(f"barrier, {_label(ranks)}", lambda place=place: _barrier(settings, column, place))
        for name in OTHERS if not settings.quick else ():
            results += turn.case(
                f"{name}, {_label(ranks)}", lambda place=place, name=name: _collective(settings, column, place, name)
            )
    return results


def _label(ranks):
    return f"{ranks} processes"


def _values(tasks, field, name="barrier", size=0):
    return by_size.collect(
        tasks, lambda results: ((one["ranks"], one[field]) for one in results if (one["name"], one["bytes"]) == (name, size))
    )


def _print_gain(tasks, times):
    """Prints how much less time a barrier takes than that of the same library with messages."""
    rows = []
    for ranks, by_column in times.items():
        own, base = by_column.get("tupleq"), by_column.get("tupleq-tuned")
        if own and base:
            rows.append([_label(ranks), f"{100 * (1 - report.median(report.ratios(own, base))):.0f}", PAPER.get(ranks, "")])
    report.table("tupleq takes so many percent less than tupleq-tuned, which sends messages", ["", "less (%)", "paper (%)"], rows)


def main(settings):
    """Measures, prints and draws the figure. Returns the tasks."""
    chosen = columns.choose(settings.columns, ["tupleq", "tupleq-tuned", "ob1-openib", "ucx-rc_v"])
    tasks = figure.measure(settings, chosen, lambda column, turn: _run(settings, column, turn))
    times = _values(tasks, "us")
    figure.print_table("Barrier: time (us)", tasks, times, _label)
    _print_gain(tasks, times)
    figure.print_table("Barrier: operations of the node that has most", tasks, _values(tasks, "operations"), _label)
    for name in OTHERS:
        for size in (8, 64, 1024):
            values = _values(tasks, "us", name, size)
            if values:
                figure.print_table(f"{name}, {report.size_text(size)}: time (us)", tasks, values, _label)
    stem = report.write_json(settings, "paper-barrier", tasks)
    panels = [("one process on each node", figure.ran(tasks), times, [])]
    figure.plot(stem, panels, "set logscale x 2; set xlabel 'processes'; set ylabel 'barrier (us)'; set yrange [0:*]; set key top left")
    return tasks
