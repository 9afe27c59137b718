# SPDX-License-Identifier: BSD-3-Clause
"""Beyond the papers: queues and memory of a process by the number of ranks, each of which sends to all others; by a formula, too."""

import math

import by_size
import cluster
import columns
import figure
import report

NAME = "resources"
TITLE = "queues and memory of a process with queues for messages of any length, by the number of ranks"
# Eight ranks a node, but for the smallest.
PLACES = {16: 4, 64: 8, 256: 32}
# Cases that --cases may name.
CHOICE = {str(ranks): ranks for ranks in PLACES}
QUICK_RANKS = (4,)
CALCULATED = (1024, 4096)
HOLD_LANES = 8  # the default of pml_tupleq_hold_lanes
SENDERS = 32  # whose first credits fit into a pair of control SRQs: pml_tupleq_large_depth by half of pml_tupleq_credits
PREFIX = "pml_tupleq_"
COUNTERS = ("lanes", "targets", "srqs", "own_bytes")


def _nodes(ranks):
    return PLACES.get(ranks) or max(2, ranks // 8)


def formula(ranks, nodes):
    """Returns the most INI QPs, TGT QPs and SRQs of a process that has sent 8 B to each other one, and got 8 B from each. Senders
    that use more credits take further control SRQs."""
    there, here = ranks // nodes, ranks // nodes - 1  # peers on another node, and on its own
    hold = (nodes - 1) * min(HOLD_LANES, there) + min(HOLD_LANES, here)
    # Control and bulk lanes go to nodes. A peer's control lane, its bulk lane and its hold lane each have a TGT QP, which processes of a
    # node share, and count each.
    return {"lanes": 2 * nodes + hold, "targets": 3 * (ranks - 1), "srqs": 2 * math.ceil((ranks - 1) / SENDERS) + ranks - 1}


def _run(settings, column, turn):
    results = []
    for ranks in QUICK_RANKS if settings.quick else figure.chosen(settings, CHOICE):
        place = cluster.Cluster(_nodes(ranks), ranks)
        program = ("memory", "--peers", str(ranks - 1), "--counters", ",".join(PREFIX + name for name in COUNTERS))
        said = turn.case(_label(ranks), lambda place=place, program=program: cluster.run(settings, place, column, *program, queues=True))
        if said:
            most = {name: max(one["counters"].get(PREFIX + name, 0) for one in said) for name in COUNTERS}
            results.append({"ranks": ranks, "resident": max(one["resident"] for one in said), **most})
    return results


def _label(ranks):
    return f"{ranks} ranks, {_nodes(ranks)} nodes"


def _line(points, at):
    """Returns the value at a place on the line through the first and the last of the points, {place: value}."""
    (x0, y0), (x1, y1) = min(points.items()), max(points.items())
    return y0 + (y1 - y0) * (at - x0) / (x1 - x0) if x1 > x0 else None


def _row(ranks, measured, lines):
    """Returns a row of the table: measured, and in brackets the formula's number."""
    said = formula(ranks, _nodes(ranks))
    row = [_label(ranks)]
    row += [f"{measured[name]:.0f} ({said[name]})" if measured else f"({said[name]})" for name in ("lanes", "targets", "srqs")]
    for name in ("own_bytes", "resident"):
        value = measured[name] if measured else _line(lines[name], ranks)
        row.append("-" if value is None else f"{value / 2**20:.1f}" if measured else f"({value / 2**20:.1f})")
    return [*row, str(ranks - 1)]


def main(settings):
    """Measures and prints the figure. Returns the tasks."""
    tasks = figure.measure(settings, columns.choose(settings.columns, ["tupleq"]), lambda column, turn: _run(settings, column, turn))
    for task in tasks:
        values = {
            name: by_size.collect([task], lambda results, name=name: ((one["ranks"], one[name]) for one in results))
            for name in (*COUNTERS, "resident")
        }
        measured = {
            ranks: {name: report.median(values[name][ranks][task.name]) for name in values} for ranks in values["lanes"]
        }
        if not measured:
            continue
        lines = {name: {ranks: one[name] for ranks, one in measured.items()} for name in ("own_bytes", "resident")}
        rows = [_row(ranks, one, lines) for ranks, one in measured.items()]
        rows += [_row(ranks, None, lines) for ranks in CALCULATED if not settings.quick]
        head = ["", "INI QPs", "TGT QPs opened", "SRQs", "control buffers (MiB)", "resident (MiB)", "an RC mesh's QPs"]
        report.table(f"{task.name}: the process with most; in brackets by the formula, or on the line through the measured ones", head, rows)
    report.write_json(settings, "paper-resources", tasks)
    return tasks
