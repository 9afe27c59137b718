# SPDX-License-Identifier: BSD-3-Clause
"""One part of the benchmarks, in the fabric that it was started in, or on hosts; bench/mpi/run.sh starts it."""

import argparse
import os
import signal
import sys

import bandwidth
import barrier
import depth
import halo
import latency
import memory
import overlap
import patterns
import picture
import place
import rate
import sp

PARTS = {
    "overlap": overlap.main,
    "latency": latency.main,
    "depth": depth.main,
    "memory": memory.main,
    "bandwidth": bandwidth.main,
    "rate": rate.main,
    "halo": halo.main,
    "sp": sp.main,
    "patterns": patterns.main,
    "barrier": barrier.main,
    "picture": picture.main,
}
# Of parts whose runs are short: more than the others.
ROUNDS = {"patterns": 15, "picture": 7}
# Those of which one program takes options of its own.
TAKES_ARGUMENTS = ("overlap", "picture", "depth", "rate", "halo", "patterns")


def parse():
    """Options, and what bench/mpi/run.sh has put into the environment."""
    parser = argparse.ArgumentParser(prog="bench/run.sh", epilog=f"After --: options of the program ({', '.join(TAKES_ARGUMENTS)}).")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, fewer and shorter rounds")
    parser.add_argument("--columns", metavar="A,B", help="only these columns")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds in which every column is run (5, patterns: 15, picture: 7, quick: 2)")
    parser.add_argument("--details", action="store_true", help="overlap: show transfer time and overhead too")
    parser.add_argument("--samples", action="store_true", help="overlap, bandwidth, rate: write each iteration's time to the JSON file")
    parser.add_argument("--variants", action="store_true", help="overlap: both sides at once, and peers that post late, too")
    parser.add_argument(
        "--link", action=argparse.BooleanOptionalAction, help="with the link model, or without it; each part has its default"
    )
    parser.add_argument("--class", dest="problem", choices="SWABC", help="sp: the class (W, quick: S)")
    parser.add_argument("--npb", metavar="PATH", help="sp: run this program of the NAS parallel benchmarks instead")
    parser.add_argument("--ranks", type=int, metavar="N", help="sp: how many, a square (4); patterns: on two nodes in turn (2)")
    parser.add_argument("--from", dest="source", metavar="FILE", help="picture: draw what is in this JSON file, and measure nothing")
    parser.add_argument("--output", metavar="FILE", help="picture: draw it there, rather than in doc/overlap.svg")
    parser.add_argument("--hostfile", metavar="FILE", help="run on these hosts' own adapters, without softhca")
    parser.add_argument(
        "--mpirun-options", dest="more_options", default="", metavar="OPTIONS", help="one word of options, for mpirun in every column"
    )
    parser.add_argument("--timeout", type=int, default=180, metavar="S", help="for one program (180)")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    settings = parser.parse_args(words[:end])
    settings.arguments = words[end + 1 :]
    if settings.arguments and settings.part not in TAKES_ARGUMENTS:
        parser.error(f"options of a program are for {', '.join(TAKES_ARGUMENTS)} alone")
    if settings.part != "overlap" and settings.variants:
        parser.error("--variants is for overlap alone")
    if settings.part != "sp" and (settings.problem or settings.npb):
        parser.error("--class and --npb are for sp alone")
    if settings.part != "picture" and (settings.source or settings.output):
        parser.error("--from and --output are for picture alone")
    if settings.part == "picture" and settings.hostfile:
        parser.error("the picture is one of softhca, so it takes no --hostfile")
    if settings.part not in ("sp", "patterns") and settings.ranks:
        parser.error("--ranks is for sp and patterns alone")
    if settings.npb:
        settings.npb = os.path.abspath(settings.npb)
        if settings.problem:
            parser.error("a program of the NAS parallel benchmarks was built for its class")
        if not os.access(settings.npb, os.X_OK):
            parser.error(f"{settings.npb} is no program")
    settings.ranks = settings.ranks or (4 if settings.part == "sp" else 2)
    if settings.rounds is None:
        settings.rounds = 2 if settings.quick else ROUNDS.get(settings.part, 5)
    if settings.rounds < 1:
        parser.error("--rounds wants a positive number")
    settings.top = os.environ["BENCH_TOP"]
    settings.programs = os.environ["BENCH_PROGRAMS"]
    settings.results = os.environ.get("BENCH_RESULTS") or os.path.join(settings.top, "bench", "results")
    try:
        place.use(settings)
    except (OSError, ValueError) as problem:
        parser.error(str(problem))
    return settings


def main():
    """The exit status is 1 if a column of this project couldn't be run."""
    settings = parse()
    # A signal ends this program by an exception, so that jobs.run() ends its ranks.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    # A container's root may run benchmarks; and aggregated, some help messages get lost.
    os.environ.update(
        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_orte_base_help_aggregate="0"
    )
    tasks = PARTS[settings.part](settings)
    return int(any(task.own and task.skipped for task in tasks))


if __name__ == "__main__":
    sys.exit(main())
