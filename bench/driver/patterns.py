# SPDX-License-Identifier: BSD-3-Clause
"""The time of a step of communication patterns."""

import columns
import jobs
import report
from rounds import Task, take_turns

# tupleq takes at most this many times as long as the better of the traditional ways.
LIMIT = 1.1
TRADITIONAL = ("rput", "rget")
# Here receives are posted in time, and messages are long enough to gain from that.
IN_TIME = ("posted", "halo", "stencil")
IN_TIME_FROM = 16 << 10


def _task(settings, column):
    arguments = ["--ms", "15" if settings.quick else "40", *settings.arguments]
    command = jobs.mpirun(settings, column, "patterns", *arguments)

    def run(show):
        return jobs.run_json(
            command,
            settings.timeout,
            lambda o: show(f"{o['pattern']} {report.size_text(o['bytes'])}: {o['step_us']:.1f} us"),
        )

    return Task(column.name, run, column.own)


def _values(tasks):
    """{pattern: {size: {column: [time per round]}}}, in the program's order."""
    found = {}
    for task in tasks:
        for objects in task.results:
            for o in objects:
                sizes = found.setdefault(o["pattern"], {}).setdefault(o["bytes"], {})
                sizes.setdefault(task.name, []).append(o["step_us"])
    return found


def _cases(values):
    """(pattern, size, times by column), in the program's order."""
    return [(pattern, size, times) for pattern, sizes in values.items() for size, times in sorted(sizes.items())]


def _better(traditional, skip):
    """The times of the faster of the traditional ways, by all rounds but one: whoever had luck in a round would be
    the one to compare with there."""

    def others(values):
        return [value for i, value in enumerate(values) if i != skip] or values

    return min(traditional, key=lambda values: report.median(others(values)))


def _ratios(times, name):
    """Formed within a round, from runs that are close in time."""
    traditional = [times[column] for column in TRADITIONAL if column in times]
    if name not in times or not traditional:
        return []
    rounds = min(len(values) for values in (times[name], *traditional))
    return [times[name][i] / _better(traditional, i)[i] for i in range(rounds)]


def _print_tables(tasks, cases):
    names = [task.name for task in tasks]
    by_time, by_ratio = [], []
    for pattern, size, times in cases:
        where = [f"{pattern} {report.size_text(size)}"]
        by_time.append(where + [report.cell(times.get(name)) for name in names])
        by_ratio.append(where + [report.cell(_ratios(times, name)) for name in names])
    report.table("Time of a step (us)", ["", *names], by_time)
    report.table(f"Ratio to the better of {' and '.join(TRADITIONAL)}", ["", *names], by_ratio)


def _judge(cases):
    print("\nTargets for tupleq, against the better of rput and rget")
    slow, behind, compared, in_time = [], [], 0, 0
    for pattern, size, times in cases:
        ratios = _ratios(times, "tupleq")
        if not ratios:
            continue
        compared += 1
        ratio = report.median(ratios)
        text = f"{pattern} {report.size_text(size)}: {ratio:.2f}"
        if ratio > LIMIT:
            slow.append(text)
        if pattern in IN_TIME and size >= IN_TIME_FROM:
            in_time += 1
            if ratio >= 1:
                behind.append(text)
    report.judge(f"every pattern at most {LIMIT} x", not slow if compared else None, ", ".join(slow))
    report.judge(
        f"{', '.join(IN_TIME)} faster from {report.size_text(IN_TIME_FROM)}",
        not behind if in_time else None,
        ", ".join(behind),
    )


def main(settings):
    """Measures, prints and writes it all. Returns the tasks."""
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, columns.DEVICE)]
    take_turns(tasks, settings.rounds)
    cases = _cases(_values(tasks))
    _print_tables(tasks, cases)
    report.print_skipped(tasks)
    _judge(cases)
    report.write_json(settings, "patterns", tasks)
    return tasks
