# SPDX-License-Identifier: BSD-3-Clause
"""Latency against the number of receives posted, and of unexpected messages queued, of other tags."""

import columns
import jobs
import report
from rounds import Task, take_turns

DEPTHS = "0,16,128,1024,4096,8192"
QUICK_DEPTHS = "0,1024,8192"
PAIRS = 15  # at least, over all rounds

# The kind of the other messages, their order, and the options of the program.
KINDS = {
    ("posted", "tags"): ("receives posted, in the order of their tags", ()),
    ("posted", "random"): ("receives posted, in random order", ("--random",)),
    ("unexpected", "tags"): ("unexpected messages, in the order of their tags", ("--unexpected",)),
    ("unexpected", "random"): ("unexpected messages, in random order", ("--unexpected", "--random")),
}

# The most that latency may grow, as a ratio.
LIMIT = 1.05


def _task(settings, column):
    arguments = ["--depths", QUICK_DEPTHS if settings.quick else DEPTHS]
    arguments += ["--pairs", str(-(-PAIRS // settings.rounds)), "--repeats", "300" if settings.quick else "1000"]

    def run(show):
        results = []
        for title, options in KINDS.values():
            results += jobs.run_json(
                jobs.mpirun(settings, column, "depth", *arguments, *options, *settings.arguments),
                settings.timeout,
                lambda result, title=title: show(f"{result['depth']} {title}: {report.median(result['ratio']):.2f} x none"),
            )
        return results

    return Task(column.name, run, column.own)


def _values(tasks, field):
    """Returns {(kind, order): {depth: {column: [value per pair]}}}."""
    found = {kind: {} for kind in KINDS}
    for task in tasks:
        for results in task.results:
            for one in results:
                depths = found[one["kind"], one["order"]].setdefault(one["depth"], {})
                depths.setdefault(task.name, []).extend(one[field])
    return found


def _print_tables(tasks, times, ratios):
    names = [task.name for task in tasks]
    for kind, (title, _) in KINDS.items():
        for values, what in ((times, "8 B, half a round trip (us)"), (ratios, "ratio to none, pair by pair")):
            rows = [
                [str(depth), *(report.cell(by_column.get(name)) for name in names)]
                for depth, by_column in sorted(values[kind].items())
            ]
            report.table(f"{title.capitalize()}: {what}", ["", *names], rows)


def _judge(ratios):
    report.print_targets("tupleq")
    for kind, (title, _) in KINDS.items():
        by_depth = {depth: by_column["tupleq"] for depth, by_column in ratios[kind].items() if "tupleq" in by_column}
        text = f"{title}: at most {LIMIT} x none at any depth"
        if not by_depth:
            report.judge(text, None)
            continue
        worst = max(by_depth, key=lambda depth: report.median(by_depth[depth]))
        value, pairs = report.median(by_depth[worst]), len(by_depth[worst])
        report.judge(text, value <= LIMIT, f"{value:.3f} at {worst}, {pairs} pairs")


def _plot(stem, tasks, ratios):
    """Draws a graph per kind, with a line per column."""
    ran = [task.name for task in tasks if task.results]
    if not ran:
        return
    script = [
        "set terminal pngcairo size 1200,1000 font 'sans,11'",
        f"set output '{stem}.png'",
        "set multiplot layout 2,2",
        # Depth 0 has no place on a logarithmic axis; its ratio is 1 in any case.
        "set logscale xy; set xrange [8:16384]; set yrange [0.8:*]; set grid; set key below",
        "set ylabel 'latency, ratio to none'",
    ]
    for kind, (title, _) in KINDS.items():
        script.append(f"set xlabel '{title}'")
        script += report.error_lines(ran, {depth: values for depth, values in ratios[kind].items() if depth})
    report.draw(stem, [*script, "unset multiplot"])


def main(settings):
    """Measures, prints and writes all figures. Returns the tasks."""
    report.print_head(settings)
    tasks = [_task(settings, column) for column in columns.choose(settings.columns, [*columns.DEVICE, *columns.SHARED_MEMORY])]
    take_turns(tasks, settings.rounds)
    ratios = _values(tasks, "ratio")
    _print_tables(tasks, _values(tasks, "with_us"), ratios)
    report.print_skipped(tasks)
    _judge(ratios)
    stem = report.write_json(settings, "depth", tasks)
    _plot(stem, tasks, ratios)
    return tasks
