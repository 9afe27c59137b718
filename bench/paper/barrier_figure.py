# SPDX-License-Identifier: BSD-3-Clause
"""RDMA barrier: its time from 2 to 64 processes, one or two on each node, and the adapters' operations; small collectives as well."""

import by_size
import cluster
import columns
import figure
import report

NAME = "barrier"
TITLE = "RDMA barrier: time by number of processes"
RANKS = (2, 4, 8, 16, 32, 64)
# Cases that --cases may name.
CHOICE = {str(ranks): ranks for ranks in RANKS}
QUICK_RANKS = (2, 4)
PER_NODE = {1: "one process on each node", 2: "two processes on each node"}
# The paper's best is on 32 nodes with two processes each.
PAPER = {(64, 2): "66"}
OTHERS = ("bcast", "allreduce", "reduce")
SIZES = "8,64,1K"
# Columns in which the processes of a node wait for each other in shared memory.
SHARED = ("tupleq", "tupleq-tuned-auto")
# Barriers before the first that counts: by RDMA write, and by messages, until their tuples have queues.
WARM_UP, MESSAGES_WARM_UP = 10, 200
# MPI_Allreduce before the first that counts, until there are enough registered copies of its long messages. A repeat of the others is a call
# for each root.
ALLREDUCE_WARM_UP = 60


def _place(column, ranks, per_node):
    return cluster.Cluster(ranks // per_node, ranks, shared=per_node > 1 and column.name in SHARED)


def _effort(n, warm_up):
    return ["--least", str(n), "--most", str(n), "--warm-up", str(warm_up)]


def _barrier(settings, column, ranks, per_node):
    """Returns the result of the barrier: its time, and the operations of the node that has most, from a run of n barriers and one of 2 n.
    The time is the mean, because a rank that is late in one barrier waits less in the next."""
    warm_up = WARM_UP if settings.quick or column.name == "tupleq" else MESSAGES_WARM_UP
    efforts = [_effort(n, warm_up) for n in (10, 20)]
    (_, few), (said, many) = cluster.count(settings, _place(column, ranks, per_node), column, "collective", efforts)
    operations = max((more - less) / 10 for less, more in zip(few, many))
    return [{"ranks": ranks, "per_node": per_node, "name": "barrier", "bytes": 0, "us": said[0]["mean_us"], "operations": operations}]


def _collective(settings, column, ranks, name):
    """Returns the results of another collective, by size, with one process on each node."""
    effort = _effort(5, ALLREDUCE_WARM_UP if name == "allreduce" else WARM_UP)
    measured = cluster.run(settings, _place(column, ranks, 1), column, "collective", *effort, f"--{name}", SIZES)
    return [{"ranks": ranks, "per_node": 1, "name": name, "bytes": one["bytes"], "us": one["us"]} for one in measured]


def _run(settings, column, turn):
    results = []
    for ranks in QUICK_RANKS if settings.quick else figure.chosen(settings, CHOICE):
        for per_node in PER_NODE:
            results += turn.case(
                f"barrier, {_label(ranks)}, {PER_NODE[per_node]}",
                lambda ranks=ranks, per_node=per_node: _barrier(settings, column, ranks, per_node),
            )
        for name in OTHERS if not settings.quick else ():
            results += turn.case(f"{name}, {_label(ranks)}", lambda ranks=ranks, name=name: _collective(settings, column, ranks, name))
    return results


def _label(ranks):
    return f"{ranks} processes"


def _values(tasks, field, per_node=1, name="barrier", size=0):
    wanted = (per_node, name, size)
    return by_size.collect(
        tasks, lambda results: ((one["ranks"], one[field]) for one in results if (one["per_node"], one["name"], one["bytes"]) == wanted)
    )


def _print_gain(times, per_node):
    """Prints how much less time a barrier takes than that of the same library with messages."""
    rows = []
    for ranks, by_column in times.items():
        own, base = by_column.get("tupleq"), by_column.get("tupleq-tuned")
        if own and base:
            less = 100 * (1 - report.median(report.ratios(own, base)))
            rows.append([_label(ranks), f"{less:.0f}", PAPER.get((ranks, per_node), "")])
    title = f"{PER_NODE[per_node]}: how much less time tupleq takes than tupleq-tuned, which sends messages"
    report.table(title, ["", "less (%)", "paper (%)"], rows)


def main(settings):
    """Measures, prints and draws the figure. Returns the tasks."""
    chosen = columns.choose(settings.columns, ["tupleq", "tupleq-tuned", "tupleq-tuned-auto", "ob1-openib", "ucx-rc_v"])
    tasks = figure.measure(settings, chosen, lambda column, turn: _run(settings, column, turn))
    panels = []
    for per_node, place in PER_NODE.items():
        times = _values(tasks, "us", per_node)
        figure.print_table(f"Barrier, {place}: time (us)", tasks, times, _label)
        _print_gain(times, per_node)
        operations = _values(tasks, "operations", per_node)
        figure.print_table(f"Barrier, {place}: operations of the node that has most", tasks, operations, _label)
        panels.append((place, figure.ran(tasks), times, []))
    for name in OTHERS:
        for size in (8, 64, 1024):
            values = _values(tasks, "us", 1, name, size)
            if values:
                figure.print_table(f"{name}, {report.size_text(size)}: time (us)", tasks, values, _label)
    stem = report.write_json(settings, "paper-barrier", tasks)
    figure.plot(stem, panels, "set logscale x 2; set xlabel 'processes'; set ylabel 'barrier (us)'; set yrange [0:*]; set key top left")
    return tasks
