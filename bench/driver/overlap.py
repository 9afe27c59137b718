# SPDX-License-Identifier: BSD-3-Clause
"""Availability by size: of the sender, the receiver, both at once, and with a peer that posts late."""

import by_size
import columns
import report
import virtual
from rounds import program_task, take_turns

SIDES = {"send": "Send side", "recv": "Receive side"}
# Measured only with --variants.
VARIANTS = {
    "both": "Both sides at once",
    "late-recv": "Late receiver (send side)",
    "late-send": "Late sender (receive side)",
}
TITLES = {**SIDES, **VARIANTS}
SIZES = "1,8,64,512,1K-4M"
QUICK_SIZES = "1,1K,8K,16K,32K,64K,256K,1M,4M"

# The least availability (percent) from a size up: for receives posted in time, and for late peers.
TARGETS = {"send": {32 << 10: 95, 256 << 10: 99}, "recv": {8 << 10: 90, 32 << 10: 95, 256 << 10: 99}}
VARIANT_TARGETS = {64 << 10: 90}
LATE = ("late-recv", "late-send")
# From LARGE up tupleq should be ahead when receiving; when sending, ahead of rput and level with the best.
LARGE = 32 << 10
# Below LARGE a send may be a copy: its base is hardly longer than the calls themselves, so the overhead says more than its part of the
# base.
NEAR = 0.5  # points of availability that are no difference, nor is what is within the spread


def _task(settings, column):
    arguments = ["--sizes", QUICK_SIZES if settings.quick else SIZES]
    arguments += virtual.effort(
        settings,
        real=["--step-ms", "6", "--overhead-ms", "48"] if settings.quick else ["--step-ms", "12", "--overhead-ms", "96"],
        virtual=["--step-ms", "2", "--overhead-ms", "16", "--most", "100"],
        exact=["--step-ms", "1", "--overhead-ms", "1", "--least", "3", "--most", "5"],
    )
    arguments += virtual.work(settings)
    if settings.variants:
        arguments += ["--side", ",".join([*SIDES, *VARIANTS])]
    if settings.samples:
        arguments.append("--samples")
    arguments += settings.arguments
    return program_task(
        settings,
        column,
        "overlap",
        arguments,
        lambda result: f"{result['side']} {report.size_text(result['bytes'])}: "
        f"{100 * result['availability']:.1f} % of {result['base_us']:.1f} us",
    )


def _values(tasks, field, factor):
    """Returns {side: {size: {column: [value per round]}}}."""

    def of(side):
        return by_size.collect(
            tasks, lambda results: ((one["bytes"], factor * one[field]) for one in results if one["side"] == side)
        )

    return {side: of(side) for side in TITLES}


def availability(tasks):
    """Returns percentages: {side: {size: {column: [value per round]}}}."""
    return _values(tasks, "availability", 100)


def tasks(settings):
    """Returns a task for each column that the settings choose."""
    default = columns.DEVICE + (columns.SHARED_MEMORY if settings.variants else [])
    return [_task(settings, column) for column in columns.choose(settings.columns, default, list(columns.COLUMNS))]


def _ahead(by_column, others, slack):
    """Returns true if tupleq is at least as good as the others; with slack, or hardly less."""
    best = max(others, key=lambda name: report.median(by_column[name]))
    room = max(NEAR, report.spread(by_column[best]) + report.spread(by_column["tupleq"])) if slack else 0
    return report.median(by_column["tupleq"]) >= report.median(by_column[best]) - room


def _judge_order(text, values, rivals, slack):
    behind, compared = [], 0
    for size, by_column in sorted(values.items()):
        others = [name for name in by_column if name in rivals]
        if size < LARGE or "tupleq" not in by_column or not others:
            continue
        compared += 1
        if not _ahead(by_column, others, slack):
            behind.append(report.size_text(size))
    report.judge(text, not behind if compared else None, f"behind at {', '.join(behind)}" if behind else "")


def _judge_least(title, values, targets):
    for start, least in targets.items():
        found = {
            size: report.median(by_column["tupleq"])
            for size, by_column in values.items()
            if size >= start and "tupleq" in by_column
        }
        short = [f"{report.size_text(size)}: {value:.1f}" for size, value in found.items() if value < least]
        report.judge(
            f"{title}, at least {least} % from {report.size_text(start)}", not short if found else None, ", ".join(short)
        )


def _judge(available, variants):
    report.print_targets("tupleq")
    for side, title in SIDES.items():
        values = available[side]
        _judge_least(title, values, TARGETS[side])
        # tupleq-copy is the same design.
        rivals = [name for name in columns.DEVICE if not name.startswith("tupleq")]
        large = report.size_text(LARGE)
        if side == "recv":
            _judge_order(f"{title}, ahead from {large}", values, rivals, False)
            continue
        _judge_order(f"{title}, ahead of rput from {large}", values, ["rput"], False)
        _judge_order(f"{title}, level with the best from {large}", values, rivals, True)
    for side in LATE if variants else ():
        _judge_least(VARIANTS[side], available[side], VARIANT_TARGETS)


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    report.print_head(settings)
    runs = tasks(settings)
    take_turns(runs, settings.rounds)
    available = availability(runs)
    for side, title in TITLES.items():
        by_size.print_table(f"{title}: availability in percent", runs, available[side], "{:.1f}".format)
    overhead = _values(runs, "overhead_us", 1)
    for side, title in TITLES.items():
        shown = {size: row for size, row in overhead[side].items() if settings.details or size < LARGE}
        by_size.print_table(f"{title}: overhead in us", runs, shown)
    if settings.details:
        base = _values(runs, "base_us", 1)
        for side, title in TITLES.items():
            by_size.print_table(f"{title}: transfer time in us", runs, base[side])
    report.print_skipped(runs)
    _judge(available, settings.variants)
    stem = report.write_json(settings, "overlap", runs)
    panels = [(title, available[side]) for side, title in TITLES.items() if available[side]]
    by_size.plot(stem, runs, panels, "set yrange [-10:110]; set ylabel 'availability (%)'; set key bottom right")
    return runs
