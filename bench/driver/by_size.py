# SPDX-License-Identifier: BSD-3-Clause
"""Figures by message size: tables with a line per size, graphs with a line per column."""

import report


def collect(tasks, pick):
    """Returns {size: {column: [value per round]}}. `pick` returns pairs of size and value from the results of a round."""
    found = {}
    for task in tasks:
        for results in task.results:
            for size, value in pick(results):
                found.setdefault(size, {}).setdefault(task.name, []).append(value)
    return dict(sorted(found.items()))


def print_table(title, tasks, by_size, text=report.number):
    """Prints a table with a line per size and a column per task: median and spread."""
    names = [task.name for task in tasks]
    rows = []
    for size, by_column in sorted(by_size.items()):
        rows.append([report.size_text(size), *(report.cell(by_column.get(name), text) for name in names)])
    report.table(title, ["", *names], rows)


def judge(text, by_size, rival, good):
    """Judges the ratio of tupleq to a rival at every size, and names the sizes where the ratio isn't good."""
    found = {
        size: report.ratios(by_column.get("tupleq", []), by_column.get(rival, []))
        for size, by_column in by_size.items()
    }
    found = {size: report.median(values) for size, values in found.items() if values}
    bad = [f"{report.size_text(size)}: {value:.2f}" for size, value in found.items() if not good(value)]
    report.judge(text, not bad if found else None, ", ".join(bad))


def plot(stem, tasks, panels, axis):
    """Draws graphs side by side. A panel is a title and a result of collect(); `axis`: gnuplot's settings of y."""
    ran = [task.name for task in tasks if task.results]
    if not ran:
        return
    sizes = [size for _, by_size in panels for size in by_size]
    powers = range(0, max(sizes).bit_length(), 4 if max(sizes) > 1 << 12 else 2)
    tics = ", ".join(f"'{report.size_text(1 << power)}' {1 << power}" for power in powers)
    script = [
        f"set terminal pngcairo size {750 * len(panels)},600 font 'sans,11'",
        f"set output '{stem}.png'",
        f"set multiplot layout 1,{len(panels)}",
        f"set logscale x 2; set xlabel 'message size'; set xtics ({tics})",
        f"{axis}; set grid",
    ]
    for title, by_size in panels:
        script.append(f"set title '{title}'")
        script += report.error_lines(ran, by_size)
    report.draw(stem, [*script, "unset multiplot"])
