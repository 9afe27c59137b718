# SPDX-License-Identifier: BSD-3-Clause
"""Barriers and small collectives: their time on two ranks, and the messages of more ranks than cores."""

import json
import math

import columns
import jobs
import place
import report
import virtual
from rounds import Task, take_turns

TARGET = 0.6
SIZES = "8,64,256,1K"
COUNTED_SIZE = "8"
RANKS = (4, 5, 10)  # numbers of ranks whose messages are counted
NODES = 5  # nodes of the fabric
WITHIN = 4  # ranks on one node whose messages are counted
MOVING = ("allreduce", "bcast", "reduce")
ROOTED = ("bcast", "reduce")  # a repeat is one operation per root, and each rank is a root
ONE_NODE = " on one node"
PATTERNS = ("doubling", "dissemination")
OPERATIONS = ("sends", "writes", "reads", "atomics")


def _arguments(name, sizes):
    return (f"--{name}", sizes) if name in MOVING else ()


def _timed(settings, column, one_node=False):
    extra = settings.one_node if one_node else ()
    repeats = virtual.effort(
        settings,
        real=["--ms", "50" if settings.quick else "150"],
        virtual=["--ms", "5", "--most", "500"],
        exact=["--ms", "1", "--warm-up", "20", "--most", "20"],
    )

    # Within a node coll/tupleq waits in shared memory.
    local = one_node and column.name == "tupleq"

    def run(show):
        jobs.check_shared_memory(settings, local)
        results = {}
        for name in ("barrier", *MOVING):
            show(name)
            command = jobs.mpirun(settings, column, "collective", *repeats, *_arguments(name, SIZES), extra=extra)
            for result in jobs.run_json(command, settings.timeout):
                results[name, result["bytes"]] = result["us"]
        return {f"{name} {size}": us for (name, size), us in results.items()}

    return Task(column.name + (ONE_NODE if one_node else ""), run, column.own and not (settings.virtual and local))


def _operations():
    """Returns the number of operations of each adapter of the fabric so far."""
    said = json.loads(jobs.run(["softhca", "stat", "--json"], 20))
    return [sum(hca["counters"][name] for name in OPERATIONS) for hca in said["hcas"]]


def _count(settings, column, name, ranks, extra):
    """Returns the most that a node sends for an operation, from a run and one with twice as many operations."""

    def sent(times):
        before = _operations()
        number = ("--least", str(times), "--most", str(times), *virtual.effort(settings, real=(), virtual=("--warm-up", "5")))
        command = jobs.mpirun(
            settings, column, "collective", *number, *_arguments(name, COUNTED_SIZE), ranks=ranks, extra=extra
        )
        jobs.run_json(command, settings.timeout)
        return [after - then for after, then in zip(_operations(), before)]

    few = 10 if settings.virtual else 200 if settings.quick else 1000
    operations = few * ranks if name in ROOTED else few
    return max((more - less) / operations for less, more in zip(sent(few), sent(2 * few)))


def _counted(settings, column, pattern=None):
    extra = columns.mca(coll_tupleq_barrier=pattern) if pattern else ()

    def run(show):
        place.need_softhca(settings, "the count of the adapters' operations")
        results = {}
        for name in ("barrier", *MOVING):
            show(f"counting, {name}")
            counts = {str(ranks): _count(settings, column, name, ranks, extra) for ranks in RANKS}
            counts[ONE_NODE] = _count(settings, column, name, WITHIN, (*extra, *settings.one_node))
            results[name] = counts
        return results

    return Task(f"{column.name}, {pattern}" if pattern else column.name, run, column.own)


def _values(task, what):
    return [results[what] for results in task.results]


def _counts(task, name, where):
    return report.median([counts[where] for counts in _values(task, name)])


def _ratio(task, to, what):
    """Returns ratios to another task, or none without one."""
    return report.ratios(_values(task, what), _values(to, what)) if to else []


def _label(what):
    name, size = what.split()
    return name if name == "barrier" else f"{name}, {report.size_text(int(size))}"


def _print_times(tasks, title, to):
    base = next((task for task in tasks if task.name == to and task.results), None)
    ran = [task for task in tasks if task.results]
    if not ran:
        return
    for what in ran[0].results[0]:
        rows = [[task.name, report.cell(_values(task, what)), report.cell(_ratio(task, base, what))] for task in ran]
        report.table(f"{title}{_label(what)} (us)", ["", "median", f"ratio to {to}"], rows)


def _print_counts(tasks):
    heads = [*(f"{ranks} on {min(ranks, NODES)} nodes" for ranks in RANKS), f"{WITHIN}{ONE_NODE}"]
    for name in ("barrier", *MOVING):
        what = name if name == "barrier" else f"{name} of {report.size_text(int(COUNTED_SIZE))}"
        rows = [
            [task.name, *(f"{_counts(task, name, where):.2f}" for where in (*map(str, RANKS), ONE_NODE))]
            for task in tasks
            if task.results
        ]
        report.table(f"Operations of the adapter per {what}, of the node that has most", ["", *heads], rows)


def _limit(pattern, ranks):
    nodes = min(ranks, NODES)
    return int(math.log2(nodes)) + 2 if pattern == "doubling" else math.ceil(math.log2(nodes))


def _judge(timed, counted):
    report.print_targets("tupleq")
    by_name = {task.name: task for task in timed if task.results}
    own = by_name.get("tupleq")
    if own:
        for rival, most in (("tupleq-tuned", TARGET), ("ob1-openib", 1), ("ucx-rc_v", 1)):
            ratios = _ratio(own, by_name.get(rival), "barrier 0")
            value = report.median(ratios) if ratios else None
            text = f"barrier at most {most} x {rival}"
            report.judge(text, value is not None and value <= most if ratios else None, f"{value:.3f}" if ratios else "")
    for task in counted:
        pattern = task.name.partition(", ")[2]
        for ranks in RANKS if pattern and task.results else ():
            value, most = _counts(task, "barrier", str(ranks)), _limit(pattern, ranks)
            # Messages that keep connections alive are counted too.
            text = f"{pattern}, {ranks} ranks: at most {most} operations of a node per barrier"
            report.judge(text, value <= most + 0.05, f"{value:.2f}")
        if pattern and task.results:
            value = _counts(task, "barrier", ONE_NODE)
            report.judge(f"{pattern}, {WITHIN} ranks{ONE_NODE}: no operations", value <= 0.05, f"{value:.2f}")


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    report.print_head(settings)
    chosen = columns.choose(settings.columns, columns.COLLECTIVES)
    device = [column for column in chosen if not column.name.startswith("ob1-vader")]
    between = [_timed(settings, column) for column in device]
    within = [_timed(settings, column, True) for column in chosen]
    counted = []
    for column in device:
        patterns = PATTERNS if column.name == "tupleq" else (None,)
        counted += [_counted(settings, column, pattern) for pattern in patterns]
    take_turns(between + within, settings.rounds)
    take_turns(counted, 1)
    _print_times(between, "", "tupleq-tuned")
    _print_times(within, "Within a node: ", f"ob1-vader-sm{ONE_NODE}")
    _print_counts(counted)
    report.print_skipped(between + within + counted)
    _judge(between, counted)
    report.write_json(settings, "barrier", between + within + counted)
    return between + within + counted
