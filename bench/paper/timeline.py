# SPDX-License-Identifier: BSD-3-Clause
"""The timeline: one picture of one sweep of SP, or of one step of a Fourier transform, per column, from softhca's trace. One sees when
ranks compute, when they wait in MPI, and when the adapters bring them data."""

import json
import math
import os
import tempfile
from dataclasses import dataclass, field
from typing import Callable

import cluster
import columns
import figure
import jobs
import report

TITLE = "What ranks and adapters do"
ROWS = 4  # ranks in the picture
LONG = 8192  # bytes of the shortest message that the picture shows

NO_BOX = "-1 1 -1 -1 1 1"  # outside the picture: a curve needs a point

COMPUTING, WAITING, ARRIVING, HELD = "computes", "waits in MPI", "data arrive", "a message to it is held"
COLOURS = {COMPUTING: "#4daf4a", WAITING: "#e41a1c", ARRIVING: "#377eb8", HELD: "#bbbbbb"}

# SP: messages of a rank: faces once a step (and once more in the report after the last step); a sweep forward and backward, by axis.
FACES = 6
SWEEP = 2 * (4 - 1)
AXES = 3
SP_STEPS, SP_QUICK_STEPS = 12, 2  # until the tuples have their queues

# FFT: pieces in which the data are transposed, and steps until the tuples have their queues. The transforms take the time of
# bench/run.sh fft.
PIECES = 4
FFT_STEPS = 8
GFLOPS = "5.5"


@dataclass(frozen=True)
class Subject:
    """A program of which there is a timeline."""

    title: str
    unit: str  # what the picture shows
    columns: list
    place: Callable  # from the settings: the cluster
    command: Callable  # from the settings: the program and its arguments
    exact: bool  # computing is a sleep, and CPU time doesn't count
    kinds: dict  # what a thread's stretches of the trace are
    step_us: Callable  # from the settings and the program's object
    window: Callable  # from the trace, the cluster and the program's object: start and end


@dataclass
class Trace:
    """Stretches of time by rank: (kind, from, to) in us."""

    stretches: dict = field(default_factory=dict)
    arrivals: dict = field(default_factory=dict)


def _events(path, names):
    """Yields the events of a trace with one of these names. A trace has an event on each line, and may be larger than memory."""
    quoted = [f'"name":"{name}"' for name in names]
    with open(path, encoding="utf-8") as file:
        for line in file:
            if any(name in line for name in quoted):
                yield json.loads(line.rstrip(",\n"))


def _main_threads(path):
    """Returns {number of the process: (rank, its main thread)} of the ranks that the picture shows."""
    threads = {}
    for event in _events(path, ["process_name"]):
        name = event["args"]["name"]
        rank = int(name.split()[1].rstrip(",")) if name.startswith("rank ") else ROWS
        if rank < ROWS:
            threads[event["pid"]] = rank, int(name.split("(pid ")[1].rstrip(")"))
    return threads


def read(path, kinds):
    """Returns the Trace of the ranks that the picture shows. `kinds`: what a thread's stretches are."""
    threads = _main_threads(path)
    trace = Trace({rank: [] for rank, _ in threads.values()}, {rank: [] for rank, _ in threads.values()})
    begun = {}
    for event in _events(path, [*kinds, "arriving", "held"]):
        phase, name, start = event["ph"], event["name"], event["ts"]
        if phase == "X" and event["pid"] in threads:
            rank, thread = threads[event["pid"]]
            if event["tid"] == thread:
                trace.stretches[rank].append((kinds[name], start, start + event["dur"]))
        elif phase == "b" and event["args"]["bytes"] >= LONG:
            to = event["pid"] if name == "arriving" else event["args"].get("to")
            if to in threads:
                begun[name, event["id"]] = threads[to][0], start
        elif phase == "e" and (name, event["id"]) in begun:
            rank, first = begun.pop((name, event["id"]))
            trace.arrivals[rank].append((ARRIVING if name == "arriving" else HELD, first, start))
    return trace


def sp_window(trace, _place, _result):
    """Returns start and end of rank 0's second sweep in the last step."""
    ends = sorted(end for kind, _, end in trace.arrivals[0] if kind == ARRIVING)
    sweeps = ends[-FACES - AXES * SWEEP : -FACES]
    if len(sweeps) < AXES * SWEEP:
        raise jobs.Failed(f"the trace has {len(ends)} long messages to rank 0, too few for a step of SP", "")
    return sweeps[SWEEP - 1], sweeps[2 * SWEEP - 1]


def fft_window(trace, place, result):
    """Returns start and end of the last step. Its end is that of rank 0's last long sleep, which stands for the transforms along z and for
    those along y that end right before. Open MPI's sleeps at the end of the job are shorter or longer."""
    points, planes = result["n"], result["n"] // place.ranks
    along_z_us = 5 * points * points * planes * math.log2(points) / result["gflops"] / 1e3
    ends = [end for kind, start, end in trace.stretches[0] if kind == COMPUTING and 1 <= (end - start) / along_z_us <= 2.1]
    if not ends:
        raise jobs.Failed(f"the trace has no sleep of rank 0 for the {along_z_us:.0f} us of transforms along z", "")
    return ends[-1] - result["step_us"], ends[-1]


def _fft_command(settings):
    size = ["--points", "64" if settings.quick else "256", "--pieces", str(PIECES), "--gflops", GFLOPS]
    return "fft/fft", [*size, "--ms", "1", "--least", "1", "--most", "1", "--warm-up", "2" if settings.quick else str(FFT_STEPS)]


def _sp_steps(settings):
    return SP_QUICK_STEPS if settings.quick else SP_STEPS


SUBJECTS = {
    "sp": Subject(
        title="a sweep of SP, class A",
        unit="sweep",
        columns=["tupleq", "tupleq-copy", "rput", "rget"],
        place=lambda _: cluster.Cluster(4, 16),
        command=lambda settings: ("sp/sp", ["--class", "A", "--steps", str(_sp_steps(settings))]),
        exact=False,
        kinds={"program": COMPUTING, "polls in vain": WAITING, "waits": WAITING},
        step_us=lambda settings, result: 1e6 * result["seconds"] / _sp_steps(settings),
        window=sp_window,
    ),
    # The transforms take their time by sleeping.
    "fft": Subject(
        title="a step of bench/run.sh fft",
        unit="step",
        columns=["tupleq", "tupleq-libnbc", "ob1-openib", "ucx-rc_v"],
        place=lambda settings: cluster.Cluster(4, 4) if settings.quick else cluster.Cluster(64, 64),
        command=_fft_command,
        exact=True,
        kinds={"waits": COMPUTING, "polls in vain": WAITING},
        step_us=lambda _, result: result["step_us"],
        window=fft_window,
    ),
}


def cut(stretches, start, end):
    """Returns the stretches that touch [start, end], cut to it and relative to its start."""
    return [(kind, max(a, start) - start, min(b, end) - start) for kind, a, b in stretches if b > start and a < end]


def _run(settings, subject, column, turn):
    place = subject.place(settings)
    turn.show(place.text())
    program, arguments = subject.command(settings)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        result = cluster.run(settings, place, column, program, *arguments, trace=path)[0]
        trace = read(path, subject.kinds)
    start, end = subject.window(trace, place, result)
    rows = {}
    for rank in range(ROWS):
        rows[rank] = cut(trace.stretches[rank], start, end) + cut(trace.arrivals[rank], start, end)
    return {"step_us": subject.step_us(settings, result), "shown_us": end - start, "rows": rows}


def _total(rows, kind):
    """Returns the time of stretches of a kind, as a mean over the ranks. Stretches that lie beside each other count once."""
    total = 0.0
    for stretches in rows.values():
        until = 0.0
        for _, start, end in sorted(one for one in stretches if one[0] == kind):
            total += max(0.0, end - max(start, until))
            until = max(until, end)
    return total / len(rows)


def _boxes(rows, kind):
    """Returns lines of gnuplot's data: a box for each stretch. The adapter's are below those of the thread."""
    low, high = (0.0, 0.38) if kind in (COMPUTING, WAITING) else (-0.36, -0.18) if kind == ARRIVING else (-0.16, -0.04)
    for rank, stretches in rows.items():
        for _, start, end in (one for one in stretches if one[0] == kind):
            yield f"{start} {-rank} {start} {end} {-rank + low} {-rank + high}"


def _plot(stem, runs):
    longest = max(run["shown_us"] for run in runs.values())
    script = [
        f"set terminal pngcairo size 1200,{60 + 230 * len(runs)} font 'sans,11'",
        f"set output '{stem}.png'",
        f"set multiplot layout {len(runs)},1",
        f"set xrange [0:{longest}]; set yrange [{-ROWS + 0.4}:0.6]; set grid x; set lmargin 9; set rmargin 30",
        "set ytics (" + ", ".join(f"'rank {rank}' {-rank}" for rank in range(ROWS)) + ")",
        "set style fill solid noborder",
    ]
    for name, run in runs.items():
        script.append(f"set title '{name}: {run['shown_us']:.0f} us' noenhanced")
        script.append("set xlabel 'us'" if name == list(runs)[-1] else "unset xlabel")
        script.append("set key outside right top" if name == list(runs)[0] else "unset key")
        script.append("plot " + ", ".join(f"'-' with boxxyerrorbars lc rgb '{colour}' title '{kind}'" for kind, colour in COLOURS.items()))
        for kind in COLOURS:
            script += [*(list(_boxes(run["rows"], kind)) or [NO_BOX]), "e"]
    report.draw(stem, [*script, "unset multiplot"])


def main(settings):
    """Makes the traces and the picture. Returns the tasks."""
    subject = SUBJECTS[settings.timeline]
    print(f"The picture shows {subject.title}: {ROWS} of {subject.place(settings).text()}.")
    chosen = columns.choose(settings.columns, subject.columns)
    tasks = figure.measure(settings, chosen, lambda column, turn: _run(settings, subject, column, turn))
    runs = {task.name: task.results[0] for task in tasks if task.results}
    rows = [
        [name, f"{run['step_us']:.0f}", f"{run['shown_us']:.0f}", *(f"{_total(run['rows'], kind):.0f}" for kind in COLOURS)]
        for name, run in runs.items()
    ]
    head = "A step" if subject.unit == "step" else f"A step and one {subject.unit}"
    report.table(f"{head} (us); the mean over the ranks shown", ["", "step", "shown", *COLOURS], rows)
    stem = report.write_json(settings, f"paper-timeline-{settings.timeline}", tasks)
    if runs:
        _plot(stem, runs)
    return tasks
