# SPDX-License-Identifier: BSD-3-Clause
"""Statistics, tables, JSON files and plots."""

import datetime
import json
import os
import platform
import re
import statistics
import subprocess

import columns
import load
import mpich
import virtual


def median(values):
    """Returns the median of a list that isn't empty."""
    return statistics.median(values)


def spread(values):
    """Returns half the distance of the quartiles, or of the extremes if there are fewer than four values."""
    if len(values) < 4:
        return (max(values) - min(values)) / 2
    low, _, high = statistics.quantiles(values, method="inclusive")
    return (high - low) / 2


def ratios(values, base):
    """Returns ratios that are formed within a round, of runs that are close in time."""
    return [value / divisor for value, divisor in zip(values, base)]


def size_text(size):
    """Returns a size with its unit: 8192 is 8 KiB."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def number(value):
    """Returns a number with three significant digits."""
    size = abs(value)
    return f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3}f}"


def cell(values, text=number):
    """Returns median and spread, or "-" if there are no values."""
    return f"{text(median(values))} ±{text(spread(values))}" if values else "-"


def table(title, head, rows):
    """Prints a title and columns: the first flush left, the others flush right. Prints nothing without rows."""
    if not rows:
        return
    print(f"\n{title}")
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        print("  ".join(cells).rstrip())


_busy = None  # load.busy(), once it was asked


def _say_busy(before):
    """Returns true on a busy machine, and says so the first time, behind the text."""
    global _busy
    if _busy is None:
        _busy = load.busy()
        if _busy:
            print(f"{before}this machine is busy, with {_busy} CPUs in use by other programs, so the figures are worthless")
    return bool(_busy)


def print_targets(of=""):
    """Prints the heading above targets. On a busy machine says instead, once, that they aren't judged; judge() is then silent."""
    if not _busy:
        print(f"\nTargets{of and f' for {of}'}")
    _say_busy("  not judged: ")


def judge(text, good, detail=""):
    """Prints whether a target is met. No exit status depends on that."""
    if _busy:
        return
    verdict = "unknown" if good is None else "met" if good else "NOT MET"
    print(f"  {text}: {verdict}{f' ({detail})' if detail else ''}")


LAST_LINES = 40  # of the output of a program that failed


def print_skipped(tasks):
    """Prints which columns are missing, and why, with the last lines of the output of this project's."""
    for task in tasks:
        if task.skipped:
            print(f"  {task.name} did not run: {task.skipped}")
        for case, reason in task.lost.items():
            print(f"  {task.name}, {case}, did not run: {reason}")
        # Columns of other projects may be missing, and the reason is enough. One of this project has failed.
        for line in (task.output or "").splitlines()[-LAST_LINES:] if task.own else ():
            print(f"    | {line}")


def _output(*command):
    """Returns the output of a command, or nothing if there is no such command."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"model name\s*:\s*(.*)", file.read())
    return found[1] if found else platform.machine()


def machine():
    """Returns the facts of this machine."""
    return {
        "cpu": _cpu(),
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "load": os.getloadavg()[0],
    }


def _softhca_options():
    """Returns the options of the fabric that aren't defaults."""
    lines = [line.split() for line in _output("softhca", "options").splitlines()[1:]]
    return {fields[0]: fields[1] for fields in lines if len(fields) > 3 and fields[2] != "default"}


def versions(settings):
    """Returns the versions of all software that takes part."""
    ucx = re.search(r"version[=\s]+(\S+)", _output("ucx_info", "-v"), re.IGNORECASE)
    return {
        "tupleq": _output("git", "-C", settings.top, "describe", "--always", "--dirty"),
        "openmpi": _output("ompi_info", "--version").split("\n")[0],
        "mpich": mpich.version(settings.mpirun) if settings.mpirun else {},
        "ucx": ucx[1] if ucx else "",
        "softhca": {} if settings.hostfile else _softhca_options(),
    }


def print_machine():
    """Prints the machine's CPU, kernel and load."""
    here = machine()
    print(f"{here['cpu']}, {here['cpus']} CPUs, Linux {here['kernel']}; load {here['load']:.1f}.")


def print_head(settings):
    """Prints the machine and the command lines, which a reader should know before the figures."""
    print_machine()
    print(f"Rounds: {settings.rounds}, columns in turn; medians over rounds, ± half the distance of the quartiles.")
    if settings.virtual:
        print(virtual.describe(settings))
    if not settings.hostfile:
        print(f"softhca run {settings.softhca_options}")
    print(f"{settings.mpirun or 'mpirun'} -n {settings.ranks} {' '.join(settings.mpirun_options)}")


def _run(task):
    """Returns a column's entry in the JSON file."""
    return {"name": task.name, "skipped": task.skipped, "lost": task.lost, "output": task.output, "rounds": task.results}


def write_json(settings, name, tasks):
    """Writes everything that was measured. Returns the path of the file without its suffix."""
    stamp = datetime.datetime.now(datetime.timezone.utc)
    stem = os.path.join(settings.results, f"{name}-{stamp:%Y%m%dT%H%M%SZ}")
    data = {
        "benchmark": name,
        "format": 1,
        "time": f"{stamp:%Y-%m-%dT%H:%M:%SZ}",
        "machine": machine(),
        "versions": versions(settings),
        "settings": {key: value for key, value in vars(settings).items() if key != "part"},
        "columns": {column.name: column.options + (() if settings.hostfile else column.softhca_options) for column in columns.COLUMNS.values()},
        "runs": [_run(task) for task in tasks],
    }
    os.makedirs(settings.results, exist_ok=True)
    with open(f"{stem}.json", "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1)
        file.write("\n")
    _say_busy("\nNote: ")
    print(f"\nResults, all samples: {os.path.relpath(stem)}.json")
    return stem


def gnuplot(script):
    """Runs a script of gnuplot. Returns the error, or nothing."""
    try:
        done = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.strip() if done.returncode else ""


def error_lines(names, by_place):
    """Returns script lines that plot a line with errors per column. `by_place`: {place: {column: [value]}}."""
    script = ["plot " + ", ".join(f"'-' with yerrorlines title '{name}' noenhanced lw 2" for name in names)]
    for name in names:
        for place, by_column in sorted(by_place.items()):
            if name in by_column:
                middle, around = median(by_column[name]), spread(by_column[name])
                script.append(f"{place} {middle} {middle - around} {middle + around}")
        script.append("e")
    return script


def bars(stem, title, by_column):
    """Draws a bar with its spread per column. `by_column`: {column: [seconds]}."""
    if not by_column:
        return
    tics = ", ".join(f"'{name}' {place}" for place, name in enumerate(by_column))
    script = [
        "set terminal pngcairo size 900,500 font 'sans,11'",
        f"set output '{stem}.png'",
        f"set title '{title}' noenhanced; set ylabel 'time (s)'; set yrange [0:*]; set grid y; unset key",
        f"set xtics ({tics}) noenhanced; set xrange [-0.6:{len(by_column) - 0.4}]",
        "set boxwidth 0.6; set style fill solid 0.5",
        "plot '-' using 1:2:3 with boxerrorbars lw 2",
    ]
    script += [f"{place} {median(values)} {spread(values)}" for place, values in enumerate(by_column.values())]
    draw(stem, [*script, "e"])


def draw(stem, lines):
    """Draws a plot beside the JSON file, by a script of these lines."""
    failure = gnuplot("\n".join([*lines, ""]))
    print(f"The plot can't be drawn: {failure}" if failure else f"Plot: {os.path.relpath(stem)}.png")
