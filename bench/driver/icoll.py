# SPDX-License-Identifier: BSD-3-Clause
"""Nonblocking collectives: their time, and how much of it is left to the application."""

import by_size
import columns
import report
import virtual
from rounds import program_task, take_turns

# The columns: tupleq with Open MPI's nonblocking collectives as well.
DEFAULT = ["tupleq", "tupleq-libnbc", "ob1-openib", "ucx-rc_v"]
# Blocks of the exchanges that move a block for each pair of ranks, and of the others.
SIZES = "1K,8K,64K,1M"
QUICK_SIZES = "8K,64K"
# From this number of ranks on, blocks of 1 MiB take gigabytes.
MANY = 64
MANY_SIZES = "1K,8K,64K"
QUICK_OPERATIONS = "alltoall,allgather,neighbor_alltoall,bcast,allreduce"

# Operations that the adapter does alone, and the least availability (percent) from a size up.
ALONE = ("alltoall", "allgather", "neighbor_alltoall")
LEAST = 97
LEAST_FROM = 8 << 10
# The longest time of tupleq without work, as a multiple of the fastest other column's.
SLACK = 1.02


def _sizes(settings):
    if settings.quick:
        return QUICK_SIZES
    return MANY_SIZES if settings.ranks >= MANY else SIZES


def _task(settings, column):
    arguments = ["--sizes", _sizes(settings)]
    if settings.quick:
        arguments += ["--operations", QUICK_OPERATIONS]
    arguments += virtual.effort(
        settings,
        real=["--ms", "20"],
        virtual=["--ms", "4", "--least", "4", "--most", "20", "--warm-up", "40"],
        exact=["--ms", "1", "--least", "3", "--most", "3", "--warm-up", "40"],
    )
    arguments += virtual.work(settings) + settings.arguments
    return program_task(
        settings,
        column,
        "icoll",
        arguments,
        lambda result: f"{result['operation']} {report.size_text(result['bytes'])}: {result['base_us']:.1f} us",
    )


def _operations(tasks):
    """Returns the operations that were measured, in the program's order."""
    return list(dict.fromkeys(one["operation"] for task in tasks for results in task.results for one in results))


def _values(tasks, operation, pick):
    """Returns {size: {column: [value per round]}} of an operation."""
    return by_size.collect(
        tasks, lambda results: ((one["bytes"], pick(one)) for one in results if one["operation"] == operation)
    )


def _print_table(title, tasks, pick, text):
    """Prints a table with a line per operation and size."""
    rows = []
    for operation in _operations(tasks):
        for size, by_column in _values(tasks, operation, pick).items():
            cells = [report.cell(by_column.get(task.name), text) for task in tasks]
            rows.append([f"{operation} {report.size_text(size)}", *cells])
    report.table(title, ["", *(task.name for task in tasks)], rows)


def _with_amount(index):
    return lambda one: 100 * one["work"][index]["availability"]


def _judge_available(tasks, operation, index, amount):
    found = {
        size: report.median(by_column["tupleq"])
        for size, by_column in _values(tasks, operation, _with_amount(index)).items()
        if size >= LEAST_FROM and "tupleq" in by_column
    }
    short = [f"{report.size_text(size)}: {value:.1f}" for size, value in found.items() if value < LEAST]
    text = f"{operation}, work of {amount:g} x its time: at least {LEAST} % from {report.size_text(LEAST_FROM)}"
    report.judge(text, not short if found else None, ", ".join(short))


def _judge_time(tasks, operation):
    slow, compared = [], 0
    for size, by_column in _values(tasks, operation, lambda one: one["slowest_us"]).items():
        others = [report.median(values) for name, values in by_column.items() if name != "tupleq"]
        if "tupleq" not in by_column or not others:
            continue
        compared += 1
        ratio = report.median(by_column["tupleq"]) / min(others)
        if ratio > SLACK:
            slow.append(f"{report.size_text(size)}: {ratio:.2f} x")
    report.judge(f"{operation}: no slower than the best other column", not slow if compared else None, ", ".join(slow))


def _judge(tasks, amounts):
    report.print_targets("tupleq")
    for operation in _operations(tasks):
        if operation in ALONE:
            for index, amount in enumerate(amounts):
                _judge_available(tasks, operation, index, amount)
        _judge_time(tasks, operation)


def _amounts(tasks):
    for task in tasks:
        for results in task.results:
            return [work["amount"] for work in results[0]["work"]]
    return []


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, DEFAULT)]
    take_turns(tasks, settings.rounds)
    amounts = _amounts(tasks)
    _print_table("Time of the slowest rank, without work (us)", tasks, lambda one: one["slowest_us"], report.number)
    for index, amount in enumerate(amounts):
        title = f"Availability with work of {amount:g} x the operation's time, mean of the ranks (%)"
        _print_table(title, tasks, _with_amount(index), "{:.1f}".format)
    report.print_skipped(tasks)
    if amounts:
        _judge(tasks, amounts)
    stem = report.write_json(settings, "icoll", tasks)
    panels = [(name, _values(tasks, name, _with_amount(-1))) for name in ALONE if name in _operations(tasks) and amounts]
    if panels:
        by_size.plot(stem, tasks, panels, "set yrange [-30:110]; set ylabel 'availability (%)'; set key bottom right")
    return tasks
