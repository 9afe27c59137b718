# SPDX-License-Identifier: BSD-3-Clause
"""The time of a step of communication patterns."""

import by_size
import columns
import report
import virtual
from rounds import program_task, take_turns

# The most that the time of tupleq may be, as a multiple of the fastest other column's.
LIMIT = 1.1
TRADITIONAL = ("rput", "rget")
TUPLE_QUEUES = ("tupleq", "tupleq-copy")
# The patterns with receives posted in time, and the sizes that gain from that.
IN_TIME = ("posted", "halo", "stencil")
IN_TIME_FROM = 16 << 10


def _task(settings, column):
    arguments = virtual.effort(
        settings,
        real=["--ms", "15" if settings.quick else "40"],
        virtual=["--ms", "4", "--block-us", "200"],
        exact=["--ms", "1", "--block-us", "40"],
    )
    arguments += virtual.work(settings) + settings.arguments
    return program_task(
        settings,
        column,
        "patterns",
        arguments,
        lambda result: f"{result['pattern']} {report.size_text(result['bytes'])}: {result['step_us']:.1f} us",
    )


def _cases(tasks):
    """Returns [(pattern, size, {column: [time per round]})], in the program's order."""

    def of(pattern):
        return by_size.collect(
            tasks,
            lambda results: ((one["bytes"], one["step_us"]) for one in results if one["pattern"] == pattern),
        )

    patterns = dict.fromkeys(one["pattern"] for task in tasks for results in task.results for one in results)
    return [(pattern, size, times) for pattern in patterns for size, times in of(pattern).items()]


def _fastest(candidates, skip):
    """Returns the times of the fastest candidate, chosen by all rounds but one. Chosen by that round too, it would
    often be a column that was lucky there."""

    def remaining(values):
        return [value for i, value in enumerate(values) if i != skip] or values

    return min(candidates, key=lambda values: report.median(remaining(values)))


def _ratios(times, name, among):
    """Returns ratios to the fastest of some columns, formed within a round, of runs that are close in time."""
    candidates = [values for column, values in times.items() if column in among]
    if name not in times or not candidates:
        return []
    rounds = min(len(values) for values in (times[name], *candidates))
    return [times[name][i] / _fastest(candidates, i)[i] for i in range(rounds)]


def _without_queues(names):
    return [name for name in names if name not in TUPLE_QUEUES]


def _print_tables(tasks, cases):
    names = [task.name for task in tasks]
    by_time, by_ratio = [], []
    for pattern, size, times in cases:
        where = [f"{pattern} {report.size_text(size)}"]
        by_time.append(where + [report.cell(times.get(name)) for name in names])
        by_ratio.append(where + [report.cell(_ratios(times, name, _without_queues(names))) for name in names])
    report.table("Time of a step (us)", ["", *names], by_time)
    if _without_queues(names):
        report.table(f"Ratio to the best of {', '.join(_without_queues(names))}", ["", *names], by_ratio)


def _judge_all(cases, among):
    """Judges tupleq against the fastest of some columns, in every pattern and size."""
    slow, compared = [], 0
    for pattern, size, times in cases:
        ratios = _ratios(times, "tupleq", among)
        compared += bool(ratios)
        if ratios and report.median(ratios) > LIMIT:
            slow.append(f"{pattern} {report.size_text(size)}: {report.median(ratios):.2f}")
    report.judge(
        f"every pattern at most {LIMIT} x the best of {', '.join(among)}",
        not slow if compared else None,
        ", ".join(slow),
    )


def _judge_in_time(cases):
    """Judges tupleq against the rendezvous protocols where receives are posted in time."""
    behind, compared = [], 0
    for pattern, size, times in cases:
        if pattern not in IN_TIME or size < IN_TIME_FROM:
            continue
        ratios = _ratios(times, "tupleq", TRADITIONAL)
        compared += bool(ratios)
        if ratios and report.median(ratios) >= 1:
            behind.append(f"{pattern} {report.size_text(size)}: {report.median(ratios):.2f}")
    report.judge(
        f"{', '.join(IN_TIME)} faster than {' and '.join(TRADITIONAL)} from {report.size_text(IN_TIME_FROM)}",
        not behind if compared else None,
        ", ".join(behind),
    )


def _judge(cases, names):
    report.print_targets("tupleq")
    _judge_all(cases, TRADITIONAL)
    if _without_queues(names):
        _judge_all(cases, _without_queues(names))
    _judge_in_time(cases)


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, columns.DEVICE)]
    take_turns(tasks, settings.rounds)
    cases = _cases(tasks)
    _print_tables(tasks, cases)
    report.print_skipped(tasks)
    _judge(cases, [task.name for task in tasks])
    report.write_json(settings, "patterns", tasks)
    return tasks
