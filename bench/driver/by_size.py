# SPDX-License-Identifier: BSD-3-Clause
"""What is measured by message size: tables with a line per size, graphs with a line per column."""

import report


def collect(tasks, pick):
    """{size: {column: [value per round]}} of what `pick` finds in a round: pairs of size and value."""
    found = {}
    for task in tasks:
        for results in task.results:
            for size, value in pick(results):
                found.setdefault(size, {}).setdefault(task.name, []).append(value)
    return dict(sorted(found.items()))


def print_table(title, tasks, by_size, text=report.number):
    """A line per size and a column per task: median and spread."""
    names = [task.name for task in tasks]
    rows = []
    for size, by_column in sorted(by_size.items()):
        rows.append([report.size_text(size), *(report.cell(by_column.get(name), text) for name in names)])
    report.table(title, ["", *names], rows)


def ratios(by_column, name, rival):
    """Formed within a round, from runs that are close in time."""
    return [a / b for a, b in zip(by_column.get(name, []), by_column.get(rival, []))]


def judge(text, by_size, rival, good):
    """A target for the ratio of tupleq to a rival at every size; names the sizes where it isn't good."""
    found = {size: ratios(by_column, "tupleq", rival) for size, by_column in by_size.items()}
    found = {size: report.median(values) for size, values in found.items() if values}
    bad = [f"{report.size_text(size)}: {value:.2f}" for size, value in found.items() if not good(value)]
    report.judge(text, not bad if found else None, ", ".join(bad))


def plot(stem, tasks, panels, axis):
    """Graphs beside each other: a panel is its title and what collect() returned; `axis` is what gnuplot is told of y."""
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
        script.append("plot " + ", ".join(f"'-' with yerrorlines title '{n}' noenhanced lw 2" for n in ran))
        for name in ran:
            for size, by_column in by_size.items():
                middle, around = report.median(by_column[name]), report.spread(by_column[name])
                script.append(f"{size} {middle} {middle - around} {middle + around}")
            script.append("e")
    report.draw(stem, [*script, "unset multiplot"])
