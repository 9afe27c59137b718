# SPDX-License-Identifier: BSD-3-Clause
"""The timeline: one picture of one sweep of SP per protocol, from softhca's trace. One sees when ranks compute, when they wait in MPI,
and when the adapters bring them data."""

import json
import os
import tempfile
from dataclasses import dataclass, field

import cluster
import columns
import figure
import jobs
import report

TITLE = "One sweep of SP, class A, 16 ranks on 4 nodes: what ranks and adapters do"
PROTOCOLS = ["tupleq", "tupleq-copy", "rput", "rget"]
PLACE = cluster.Cluster(4, 16)
STEPS, QUICK_STEPS = 12, 2  # until the tuples have their queues
ROWS = 4  # ranks in the picture
LONG = 8192  # bytes of the shortest message that the picture shows

NO_BOX = "-1 1 -1 -1 1 1"  # outside the picture: a curve needs a point

# Messages of a rank: faces once a step (and once more in the report after the last step); a sweep forward and backward, by axis.
FACES = 6
SWEEP = 2 * (4 - 1)
AXES = 3

COMPUTING, WAITING, ARRIVING, HELD = "computes", "waits in MPI", "data arrive", "a message to it is held"
COLOURS = {COMPUTING: "#4daf4a", WAITING: "#e41a1c", ARRIVING: "#377eb8", HELD: "#bbbbbb"}
KINDS = {"program": COMPUTING, "polls in vain": WAITING, "waits": WAITING}


@dataclass
class Trace:
    """Stretches of time by rank: (kind, from, to) in us."""

    stretches: dict = field(default_factory=dict)
    arrivals: dict = field(default_factory=dict)


def _main_threads(events):
    """Returns {number of the process: (rank, its main thread)}."""
    threads = {}
    for event in events:
        if event["name"] == "process_name" and event["args"]["name"].startswith("rank "):
            name = event["args"]["name"]
            threads[event["pid"]] = int(name.split()[1].rstrip(",")), int(name.split("(pid ")[1].rstrip(")"))
    return threads


def read(events):
    """Returns the Trace of a list of events."""
    threads = _main_threads(events)
    trace = Trace({rank: [] for rank, _ in threads.values()}, {rank: [] for rank, _ in threads.values()})
    begun = {}
    for event in events:
        phase, name, start = event["ph"], event["name"], event["ts"]
        if phase == "X" and name in KINDS and event["pid"] in threads:
            rank, thread = threads[event["pid"]]
            if event["tid"] == thread:
                trace.stretches[rank].append((KINDS[name], start, start + event["dur"]))
        elif phase == "b" and name in ("arriving", "held") and event["args"]["bytes"] >= LONG:
            begun[name, event["id"]] = event
        elif phase == "e" and (name, event["id"]) in begun:
            first = begun.pop((name, event["id"]))
            rank = threads.get(first["pid"] if name == "arriving" else first["args"].get("to"), (None,))[0]
            if rank is not None:
                kind = ARRIVING if name == "arriving" else HELD
                trace.arrivals[rank].append((kind, first["ts"], start))
    return trace


def window(trace):
    """Returns start and end of rank 0's second sweep in the last step."""
    ends = sorted(end for kind, _, end in trace.arrivals[0] if kind == ARRIVING)
    sweeps = ends[-FACES - AXES * SWEEP : -FACES]
    if len(sweeps) < AXES * SWEEP:
        raise jobs.Failed(f"the trace has {len(ends)} long messages to rank 0, too few for a step of SP", "")
    return sweeps[SWEEP - 1], sweeps[2 * SWEEP - 1]


def cut(stretches, start, end):
    """Returns the stretches that touch [start, end], cut to it and relative to its start."""
    return [(kind, max(a, start) - start, min(b, end) - start) for kind, a, b in stretches if b > start and a < end]


def _run(settings, column, turn):
    turn.show(PLACE.text())
    steps = QUICK_STEPS if settings.quick else STEPS
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        result = cluster.run(settings, PLACE, column, "sp/sp", "--class", "A", "--steps", str(steps), trace=path)[0]
        with open(path, encoding="utf-8") as file:
            trace = read(json.load(file)["traceEvents"])
    start, end = window(trace)
    rows = {}
    for rank in range(ROWS):
        rows[rank] = cut(trace.stretches[rank], start, end) + cut(trace.arrivals[rank], start, end)
    return {"step_us": 1e6 * result["seconds"] / steps, "sweep_us": end - start, "rows": rows}


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
    longest = max(run["sweep_us"] for run in runs.values())
    script = [
        f"set terminal pngcairo size 1200,{60 + 230 * len(runs)} font 'sans,11'",
        f"set output '{stem}.png'",
        f"set multiplot layout {len(runs)},1",
        f"set xrange [0:{longest}]; set yrange [{-ROWS + 0.4}:0.6]; set grid x; set lmargin 9; set rmargin 30",
        "set ytics (" + ", ".join(f"'rank {rank}' {-rank}" for rank in range(ROWS)) + ")",
        "set style fill solid noborder",
    ]
    for name, run in runs.items():
        script.append(f"set title '{name}: {run['sweep_us']:.0f} us' noenhanced")
        script.append("set xlabel 'us'" if name == list(runs)[-1] else "unset xlabel")
        script.append("set key outside right top" if name == list(runs)[0] else "unset key")
        script.append("plot " + ", ".join(f"'-' with boxxyerrorbars lc rgb '{colour}' title '{kind}'" for kind, colour in COLOURS.items()))
        for kind in COLOURS:
            script += [*(list(_boxes(run["rows"], kind)) or [NO_BOX]), "e"]
    report.draw(stem, [*script, "unset multiplot"])


def main(settings):
    """Makes the traces and the picture. Returns the tasks."""
    settings.rounds = 1
    tasks = figure.measure(settings, columns.choose(settings.columns, PROTOCOLS), lambda column, turn: _run(settings, column, turn))
    runs = {task.name: task.results[0] for task in tasks if task.results}
    rows = [
        [name, f"{run['step_us']:.0f}", f"{run['sweep_us']:.0f}", *(f"{_total(run['rows'], kind):.0f}" for kind in COLOURS)]
        for name, run in runs.items()
    ]
    report.table("A step and one sweep (us); below them the mean over the ranks shown", ["", "step", "sweep", *COLOURS], rows)
    stem = report.write_json(settings, "paper-timeline", tasks)
    if runs:
        _plot(stem, runs)
    return tasks
