# SPDX-License-Identifier: BSD-3-Clause
"""TupleQ, figure 6: NAS SP, its time by protocol, on 64 ranks of 8 nodes; smaller, and on a link of today, too."""

import dataclasses
import re

import by_size
import cluster
import columns
import computing
import figure
import report

NAME = "sp"
TITLE = "TupleQ, figure 6: NAS SP, seconds"
# Seconds of class B, on 64 ranks of 8 nodes. The paper says that tupleq takes 27 % less for class C.
PAPER = {"tupleq": 27.38, "tupleq-copy": 28.74, "rget": 36.78, "rput": 36.69}
CASES = {
    ("S", 4, "paper"): cluster.Cluster(2, 4),
    ("A", 16, "paper"): cluster.Cluster(2, 16),
    ("A", 64, "paper"): cluster.Cluster(8, 64),
    ("B", 64, "paper"): cluster.Cluster(8, 64),
    ("C", 64, "paper"): cluster.Cluster(8, 64),
    ("C", 256, "paper"): cluster.Cluster(32, 256),
    ("B", 64, "today"): cluster.Cluster(8, 64, cluster.TODAY_LINK),
}
NOISE = 20  # percent
# Further causes that might make a rendezvous slow.
KNOBS = {
    "dense": "dense has twice as many ranks on a node",
    "half-link": "half-link has half the bandwidth",
    "half-loopback": "half-loopback has half of the link's bandwidth within a node",
    "in-turn": "in-turn exchanges one face after the other, not all at once",
    "noise": f"noise lets each stretch of computing take up to {NOISE} %% longer or shorter",
    "register": "register has no cache of registrations, so each message registers its buffers",
}
STEPS = {"S": 100, "A": 400, "B": 400, "C": 400}
# Steps before those that --steps says, in which tuples get their queues. A face is one message a step.
WARM_UP = 8
QUICK = [("S", 4, "paper")]


def name(case):
    """Returns the name of a case: B64, and B64-today with the link of today."""
    return f"{case[0]}{case[1]}{'' if case[2] == 'paper' else '-' + case[2]}"


# Cases that --cases may name.
CHOICE = {name(case): case for case in CASES if case not in QUICK}


def _cases(settings):
    """Returns the cases that the settings choose."""
    return QUICK if settings.quick else figure.chosen(settings, CHOICE)


def _label(case):
    return f"class {case[0]}, {case[1]} ranks, link of {'the paper' if case[2] == 'paper' else 'today'}"


def knobs(text):
    """Returns the knobs of a comma-separated list. Raises ValueError if there is no such knob."""
    names = text.split(",")
    for knob in names:
        if knob not in KNOBS:
            raise ValueError(f"there is no knob {knob}; there are: {', '.join(KNOBS)}")
    return names


_BANDWIDTH = re.compile(r"(?<=bandwidth=)[0-9.]+")


def _halved(number):
    return f"{float(number[0]) / 2:g}"


def _turned(settings, shape):
    """Returns the cluster with the knobs turned."""
    link = shape.link
    if "half-link" in settings.knob:
        link = _BANDWIDTH.sub(_halved, link)
    if "half-loopback" in settings.knob:
        link += ",loopback=" + _BANDWIDTH.sub(_halved, link).partition("bandwidth=")[2]
    return dataclasses.replace(shape, link=link, nodes=shape.nodes // 2 if "dense" in settings.knob else shape.nodes)


def _computing(settings, case):
    """Returns the options that let a class sleep instead of computing."""
    if not settings.replay:
        return []
    noise = ["--noise", str(NOISE)] if "noise" in settings.knob else []
    return ["--replay", ",".join(f"{settings.cpu * ns:.4f}" for ns in computing.sections(settings, case)), *noise]


def _run_case(settings, column, case, seed):
    steps = ["--steps", str(settings.steps), "--warm-up", str(WARM_UP)] if settings.steps else []
    turns = ["--in-turn"] if "in-turn" in settings.knob else []
    cpu = 0 if settings.replay else None
    program = ["sp/sp", "--class", case[0], *steps, *turns, *_computing(settings, case)]
    column = column.uncached() if "register" in settings.knob else column
    return cluster.run_matched(settings, _turned(settings, CASES[case]), column, *program, cpu=cpu, seed=seed)


def _run(settings, column, turn):
    results = []
    for case in _cases(settings):
        for one in turn.case(_label(case), lambda case=case: _run_case(settings, column, case, turn.seed(settings))):
            results.append({"case": case, **one, "seconds_of_all_steps": one["seconds"] / one["steps"] * STEPS[case[0]]})
    return results


def main(settings):
    """Measures, prints and draws the figure. Returns the tasks."""
    tasks = figure.measure(settings, columns.choose(settings.columns, columns.DEVICE), lambda column, turn: _run(settings, column, turn))
    seconds = by_size.collect(tasks, lambda results: ((tuple(one["case"]), one["seconds_of_all_steps"]) for one in results))
    share = by_size.collect(tasks, lambda results: ((tuple(one["case"]), 100 * one["mpi_share"]) for one in results))
    step = by_size.collect(tasks, lambda results: ((tuple(one["case"]), 1e3 * one["seconds"] / one["steps"]) for one in results))
    waits = by_size.collect(
        tasks, lambda results: ((tuple(one["case"]), 1e3 * one["seconds"] / one["steps"] * one["mpi_share"]) for one in results)
    )
    figure.print_table(f"Time (s){f', as {settings.steps} steps say' if settings.steps else ''}", tasks, seconds, _label)
    rows = []
    for case, by_column in seconds.items():
        base = by_column.get("rget")
        for column, values in by_column.items():
            paper = f"{PAPER[column] / PAPER['rget']:.3f}" if name(case) == "B64" and column in PAPER else ""
            rows.append([f"{_label(case)}: {column}", report.cell(report.ratios(values, base)) if base else "-", paper])
    report.table("Ratio to rget", ["", "here", "paper"], rows)
    figure.print_table("Share of the time in MPI (%)", tasks, share, _label)
    figure.print_table("A step, of three sweeps and an exchange of faces: time (ms)", tasks, step, _label)
    figure.print_table("A step: time in MPI, the ranks' mean (ms)", tasks, waits, _label)
    figure.print_matched(tasks, lambda results: ((tuple(one["case"]), one) for one in results), _label)
    stem = report.write_json(settings, "paper-sp", tasks)
    for case, by_column in seconds.items():
        report.bars(f"{stem}-{name(case)}", f"SP, {_label(case)}", by_column)
    return tasks
