# SPDX-License-Identifier: BSD-3-Clause
"""Availability by size, on both sides."""

import columns
import jobs
import report
from rounds import Task, take_turns

SIDES = {"send": "Send side", "recv": "Receive side"}
SIZES = "1,8,64,512,1K-4M"
QUICK_SIZES = "1,1K,8K,16K,32K,64K,256K,1M,4M"

# The least availability (percent) from a size up.
TARGETS = {8 << 10: 90, 32 << 10: 95, 256 << 10: 99}
# From here up tupleq should be ahead; below, not behind.
LARGE = 16 << 10
SMALL = 8 << 10


def _task(settings, column):
    arguments = ["--sizes", QUICK_SIZES if settings.quick else SIZES]
    arguments += ["--step-ms", "6" if settings.quick else "12", *settings.arguments]
    if settings.samples:
        arguments.append("--samples")
    command = jobs.mpirun(settings, column, "overlap", *arguments)

    def run(show):
        return jobs.run_json(
            command,
            settings.timeout,
            lambda o: show(
                f"{o['side']} {report.size_text(o['bytes'])}: {100 * o['availability']:.1f} % of {o['base_us']:.1f} us"
            ),
        )

    return Task(column.name, run, column.own)


def _values(tasks, field, factor):
    """{side: {size: {column: [value per round]}}}"""
    found = {side: {} for side in SIDES}
    for task in tasks:
        for objects in task.results:
            for o in objects:
                sizes = found[o["side"]].setdefault(o["bytes"], {})
                sizes.setdefault(task.name, []).append(factor * o[field])
    return found


def _print_side(title, tasks, by_size, text=report.number):
    names = [task.name for task in tasks]
    rows = []
    for size, by_column in sorted(by_size.items()):
        cells = [by_column.get(name) for name in names]
        rows.append(
            [report.size_text(size)]
            + [f"{text(report.median(v))} ±{text(report.spread(v))}" if v else "-" for v in cells]
        )
    report.table(title, ["", *names], rows)


def _ahead(by_column, others, slack):
    """Whether tupleq is at least as good as the others, but for the spread when there is slack."""
    best = max(others, key=lambda name: report.median(by_column[name]))
    room = report.spread(by_column[best]) + report.spread(by_column["tupleq"]) if slack else 0
    return report.median(by_column["tupleq"]) >= report.median(by_column[best]) - room


def _judge_order(text, by_size, wanted, rivals, slack):
    behind, compared = [], 0
    for size, by_column in sorted(by_size.items()):
        others = [name for name in by_column if name in rivals]
        if not wanted(size) or "tupleq" not in by_column or not others:
            continue
        compared += 1
        if not _ahead(by_column, others, slack):
            behind.append(report.size_text(size))
    report.judge(text, not behind if compared else None, f"behind at {', '.join(behind)}" if behind else "")


def _judge(availability):
    print("\nTargets for tupleq")
    for side, title in SIDES.items():
        by_size = availability[side]
        for start, least in TARGETS.items():
            found = {s: report.median(c["tupleq"]) for s, c in by_size.items() if s >= start and "tupleq" in c}
            short = [f"{report.size_text(s)}: {v:.1f}" for s, v in sorted(found.items()) if v < least]
            text = f"{title}, at least {least} % from {report.size_text(start)}"
            report.judge(text, not short if found else None, ", ".join(short))
        # tupleq-copy is the same design.
        rivals = [name for name in columns.DEVICE if not name.startswith("tupleq")]
        _judge_order(f"{title}, below 8 KiB not behind, within the spread", by_size, lambda s: s < SMALL, rivals, True)
        if side == "recv":
            _judge_order(f"{title}, ahead from 16 KiB", by_size, lambda s: s >= LARGE, rivals, False)
            continue
        _judge_order(f"{title}, ahead of rput from 16 KiB", by_size, lambda s: s >= LARGE, ["rput"], False)
        _judge_order(
            f"{title}, with the best from 16 KiB, within the spread", by_size, lambda s: s >= LARGE, rivals, True
        )


def _plot(stem, tasks, availability):
    """Both sides beside each other, one line per column."""
    ran = [task.name for task in tasks if task.results]
    if not ran:
        return
    tics = ", ".join(f"'{report.size_text(1 << power)}' {1 << power}" for power in range(0, 23, 4))
    script = [
        "set terminal pngcairo size 1500,600 font 'sans,11'",
        f"set output '{stem}.png'",
        "set multiplot layout 1,2",
        f"set logscale x 2; set xlabel 'message size'; set xtics ({tics})",
        "set yrange [-10:110]; set ylabel 'availability (%)'; set grid; set key bottom right",
    ]
    for side, title in SIDES.items():
        script.append(f"set title '{title}'")
        script.append("plot " + ", ".join(f"'-' with yerrorlines title '{n}' noenhanced lw 2" for n in ran))
        for name in ran:
            for size, by_column in sorted(availability[side].items()):
                middle, around = report.median(by_column[name]), report.spread(by_column[name])
                script.append(f"{size} {middle} {middle - around} {middle + around}")
            script.append("e")
    report.draw(stem, [*script, "unset multiplot"])


def main(settings):
    """Measures, prints and writes it all. Returns the tasks."""
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, columns.DEVICE)]
    take_turns(tasks, settings.rounds)
    availability = _values(tasks, "availability", 100)
    for side, title in SIDES.items():
        _print_side(f"{title}: availability in percent", tasks, availability[side], "{:.1f}".format)
    if settings.details:
        for field, what in (("base_us", "transfer time in us"), ("overhead_us", "overhead in us")):
            by_side = _values(tasks, field, 1)
            for side, title in SIDES.items():
                _print_side(f"{title}: {what}", tasks, by_side[side])
    report.print_skipped(tasks)
    _judge(availability)
    stem = report.write_json(settings, "overlap", tasks)
    _plot(stem, tasks, availability)
    return tasks
