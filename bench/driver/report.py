# SPDX-License-Identifier: BSD-3-Clause
"""Statistics, tables, JSON files, plots."""

import datetime
import json
import os
import platform
import re
import statistics
import subprocess

import columns


def median(values):
    """The median of a list that isn't empty."""
    return statistics.median(values)


def spread(values):
    """Half of what lies between the quartiles; of the extremes, where there are fewer than four values."""
    if len(values) < 4:
        return (max(values) - min(values)) / 2
    low, _, high = statistics.quantiles(values, method="inclusive")
    return (high - low) / 2


def size_text(size):
    """8192 as 8 KiB."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


def number(value):
    """Three significant digits."""
    size = abs(value)
    return f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3}f}"


def cell(values, text=number):
    """Median and spread; "-" of none."""
    return f"{text(median(values))} ±{text(spread(values))}" if values else "-"


def table(title, head, rows):
    """A title and its columns: the first to the left, the others to the right. Nothing without rows."""
    if not rows:
        return
    print(f"\n{title}")
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    for row in [head, *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        print("  ".join(cells).rstrip())


def judge(text, good, detail=""):
    """Prints whether a target is met: information, on which no exit status depends."""
    verdict = "unknown" if good is None else "met" if good else "NOT MET"
    print(f"  {text}: {verdict}{f' ({detail})' if detail else ''}")


def print_skipped(tasks):
    """Says which columns are missing, and why."""
    for task in tasks:
        if task.skipped:
            print(f"  {task.name} could not be run: {task.skipped}")


def _said_by(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""


def _cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"model name\s*:\s*(.*)", file.read())
    return found[1] if found else platform.machine()


def machine():
    """What it is measured on."""
    return {
        "cpu": _cpu(),
        "cpus": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "load": os.getloadavg()[0],
    }


def _softhca_options():
    """Those that aren't defaults."""
    lines = [line.split() for line in _said_by("softhca", "options").splitlines()[1:]]
    return {fields[0]: fields[1] for fields in lines if len(fields) > 3 and fields[2] != "default"}


def versions(settings):
    """Of all that takes part."""
    ucx = re.search(r"version[=\s]+(\S+)", _said_by("ucx_info", "-v"), re.IGNORECASE)
    return {
        "tupleq": _said_by("git", "-C", settings.top, "describe", "--always", "--dirty"),
        "openmpi": _said_by("ompi_info", "--version").split("\n")[0],
        "ucx": ucx[1] if ucx else "",
        "softhca": {} if settings.hostfile else _softhca_options(),
    }


def print_head(settings):
    """What a reader should know before the figures."""
    here = machine()
    print(f"{here['cpu']}, {here['cpus']} CPUs, Linux {here['kernel']}; load {here['load']:.1f}.")
    print(f"Rounds: {settings.rounds}, columns in turn; medians over rounds, ± half the distance of the quartiles.")
    if not settings.hostfile:
        print(f"softhca run {settings.softhca_options}")
    print(f"mpirun -n {settings.ranks} {' '.join(settings.mpirun_options)}")


def write_json(settings, name, tasks):
    """Everything that was measured. Returns the file's path without its ending."""
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
        "runs": [{"name": task.name, "skipped": task.skipped, "said": task.said, "rounds": task.results} for task in tasks],
    }
    os.makedirs(settings.results, exist_ok=True)
    with open(f"{stem}.json", "w", encoding="utf-8") as file:
        json.dump(data, file, indent=1)
        file.write("\n")
    print(f"\nResults, all samples: {os.path.relpath(stem)}.json")
    return stem


def gnuplot(script):
    """Runs a script. Returns what went wrong, or nothing."""
    try:
        done = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.strip() if done.returncode else ""


def draw(stem, lines):
    """Draws a plot beside the JSON file, by a script that is given line by line."""
    failure = gnuplot("\n".join([*lines, ""]))
    print(f"The plot can't be drawn: {failure}" if failure else f"Plot: {os.path.relpath(stem)}.png")
