# SPDX-License-Identifier: BSD-3-Clause
"""Runs one part of the benchmarks, in the fabric around it or on hosts. bench/mpi/run.sh starts it."""

import argparse
import os
import signal
import sys

import bandwidth
import barrier
import columns
import depth
import fft
import halo
import icoll
import latency
import load
import memory
import mpich
import overlap
import patterns
import picture
import place
import portals
import rate
import rma
import sp
import virtual

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
    "icoll": icoll.main,
    "fft": fft.main,
    "rma": rma.main,
    "portals": portals.main,
    "picture": picture.main,
}
# Parts whose runs are short have more rounds.
ROUNDS = {"patterns": 15, "picture": 15}
# Parts with a form for ranks of one node.
ONE_NODE_PARTS = ("bandwidth", "rate", "overlap")
# Parts with one program, which may get options of its own.
TAKES_ARGUMENTS = ("overlap", "picture", "depth", "rate", "halo", "patterns", "icoll", "fft")
# Parts that run on any number of ranks, and the usual one.
RANKS = {"sp": 4, "patterns": 2, "icoll": 4, "fft": 4}


def _check_virtual(parser, settings):
    """Ends the program with a message if options don't go with virtual time, or need it."""
    if not settings.virtual:
        if settings.cpu is not None:
            parser.error("--cpu is for --virtual alone")
        if settings.profile is not None:
            parser.error("--profile is for --virtual alone")
        return
    settings.cpu = 1 if settings.cpu is None else settings.cpu
    if settings.part not in virtual.PARTS:
        parser.error(f"{settings.part} has no figures in virtual time; --virtual is for {', '.join(virtual.PARTS)}")
    if settings.hostfile:
        parser.error("--virtual is softhca's time; a hostfile's hosts have only the real one")
    if settings.link is False:
        parser.error("--virtual needs a link model, because without one messages take no time; leave out --no-link")
    if settings.profile is not None and settings.link:
        parser.error("a profile has a link of its own; leave out --link or --profile")


def _positive(text):
    """Returns a positive number."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'wants a positive number, not "{text}"')
    return int(text)


def _factor(text):
    """Returns a factor of --cpu."""
    try:
        if 0 <= float(text) <= 1000:
            return float(text)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f'wants a factor from 0 to 1000, not "{text}"')


def _make_parser():
    """Returns the parser of the options."""
    # bench/run.sh and bench/mpi/run.sh look for whole words, so an abbreviation would have half of an option's effect.
    parser = argparse.ArgumentParser(
        prog="bench/run.sh", epilog=f"After --: options of the program ({', '.join(TAKES_ARGUMENTS)}).", allow_abbrev=False
    )
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--quick", action="store_true", help="fewer sizes, fewer and shorter rounds")
    parser.add_argument("--columns", metavar="A,B", help="only these columns")
    parser.add_argument("--rounds", type=_positive, metavar="N", help="rounds, in each of which every column runs once (5, patterns and picture: 15, virtual: 3, quick: 2)")
    parser.add_argument("--details", action="store_true", help="overlap: show transfer time too, and the overhead of all sizes")
    parser.add_argument("--samples", action="store_true", help="overlap, bandwidth, rate: write each iteration's time to the JSON file")
    parser.add_argument("--tuples", action="store_true", help="rate: long messages, by the number of tags, each of which has a queue")
    parser.add_argument("--variants", action="store_true", help="overlap: both sides at once and late peers too")
    parser.add_argument(
        "--link", action=argparse.BooleanOptionalAction, help="with the link model, or without it; each part has its default"
    )
    parser.add_argument(
        "--one-node", dest="within", action="store_true", help="bandwidth, rate, overlap: all ranks on one node, with the columns for that"
    )
    parser.add_argument(
        "--virtual", action="store_true", help=f"in softhca's virtual time, with a link model ({', '.join(virtual.PARTS)})"
    )
    parser.add_argument(
        "--cpu", type=_factor, metavar="FACTOR", help="--virtual: CPU time counts FACTOR times (1); 0: CPU time doesn't count, and work is a sleep"
    )
    parser.add_argument(
        "--profile", metavar="NAME|FILE", help="--virtual: adapters by this profile of softhca run, instead of the paper's link"
    )
    parser.add_argument("--class", dest="problem", choices="SWABC", help="sp: the class (W, quick: S)")
    parser.add_argument("--npb", metavar="PATH", help="sp: run this program of the NAS parallel benchmarks instead")
    parser.add_argument("--ranks", type=_positive, metavar="N", help="number of ranks, sp: a square (4); patterns: on two nodes in turn (2); icoll, fft: a node each (4)")
    parser.add_argument("--from", dest="source", metavar="FILE", help="picture: draw the run in this JSON file, and measure nothing")
    parser.add_argument("--output", metavar="FILE", help="picture: the file to draw, instead of doc/overlap.svg")
    parser.add_argument("--hostfile", metavar="FILE", help="run on these hosts' own adapters, without softhca")
    parser.add_argument(
        "--mpirun-options", dest="more_options", default="", metavar="OPTIONS", help="options of mpirun for every column, as one word"
    )
    parser.add_argument(
        "--mpirun", metavar="FILE", help=f"the mpiexec of MPICH, instead of Open MPI ({', '.join(mpich.PARTS)})"
    )
    parser.add_argument("--timeout", type=_positive, metavar="S", help=f"time limit of one program (180, virtual: {virtual.TIMEOUT})")
    return parser


def _check_options(parser, settings):
    """Ends the program if an option has a wrong value, or isn't for this part."""
    if settings.arguments and settings.part not in TAKES_ARGUMENTS:
        parser.error(f"options of a program are for {', '.join(TAKES_ARGUMENTS)} alone")
    if settings.within and (settings.part not in ONE_NODE_PARTS or settings.virtual):
        parser.error(f"--one-node is for {', '.join(ONE_NODE_PARTS)} in real time")
    if settings.part != "overlap" and settings.variants:
        parser.error("--variants is for overlap alone")
    if settings.part != "rate" and settings.tuples:
        parser.error("--tuples is for rate alone")
    if settings.part != "sp" and (settings.problem or settings.npb):
        parser.error("--class and --npb are for sp alone")
    if settings.part != "picture" and (settings.source or settings.output):
        parser.error("--from and --output are for picture alone")
    if settings.part == "picture" and settings.hostfile:
        parser.error("picture takes no --hostfile, because the picture shows softhca")
    if settings.part not in RANKS and settings.ranks is not None:
        parser.error(f"--ranks is for {', '.join(RANKS)} alone")
    if settings.npb:
        if settings.problem:
            parser.error("a program of the NAS parallel benchmarks was built for its class")
        if not os.path.isfile(settings.npb) or not os.access(settings.npb, os.X_OK):
            parser.error(f"{settings.npb} is no program")


def _check_mpich(parser, settings):
    """Ends the program if --mpirun doesn't go with other options, or doesn't name an mpiexec of MPICH."""
    if not settings.mpirun:
        return
    if settings.part not in mpich.PARTS:
        parser.error(f"--mpirun is for {', '.join(mpich.PARTS)} alone")
    if settings.hostfile:
        parser.error("--mpirun is for softhca's nodes; a hostfile is Open MPI's")
    problem = mpich.why_not(settings.mpirun)
    if problem:
        parser.error(problem)


def _check_columns(parser, settings):
    """Ends the program if a column isn't known to any part, or is another MPI's. Each part then looks at its own."""
    for name in settings.columns.split(",") if settings.columns else ():
        if name not in columns.COLUMNS:
            parser.error(f"there is no column {name}; there are: {', '.join(columns.COLUMNS)}")
        if settings.mpirun and name not in columns.MPICH:
            parser.error(f"with --mpirun there is no column {name}; there are: {', '.join(columns.MPICH)}")
        if not settings.mpirun and name in columns.MPICH:
            parser.error(f"column {name} needs the mpiexec of an MPICH: --mpirun FILE")


def _set_defaults(settings):
    """Sets the options that weren't given to their defaults for this part."""
    if settings.mpirun and not settings.columns:
        settings.columns = ",".join(columns.MPICH)
    if settings.within and not settings.columns:
        settings.columns = ",".join(columns.ONE_NODE)
    settings.ranks = settings.ranks or RANKS.get(settings.part, 2)
    if settings.rounds is None:
        usual = virtual.ROUNDS if settings.virtual else ROUNDS.get(settings.part, 5)
        settings.rounds = 2 if settings.quick else usual
    if settings.timeout is None:
        settings.timeout = virtual.TIMEOUT if settings.virtual else 180


def _read_words():
    """Returns the parser and the settings: the options alone. Ends the program if a word is wrong."""
    parser = _make_parser()
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    settings = parser.parse_args(words[:end])
    settings.arguments = words[end + 1 :]
    _check_virtual(parser, settings)
    _check_options(parser, settings)
    _check_mpich(parser, settings)
    _check_columns(parser, settings)
    return parser, settings


def parse():
    """Returns the settings: the options, and the environment of bench/mpi/run.sh."""
    parser, settings = _read_words()
    if settings.npb:
        settings.npb = os.path.abspath(settings.npb)
    if settings.mpirun:
        settings.mpirun = os.path.abspath(settings.mpirun)
    _set_defaults(settings)
    settings.top = os.environ["BENCH_TOP"]
    settings.programs = os.environ["BENCH_PROGRAMS"]
    settings.results = os.environ.get("BENCH_RESULTS") or os.path.join(settings.top, "bench", "results")
    try:
        place.use(settings)
    except (OSError, ValueError) as problem:
        parser.error(str(problem))
    return settings


def main():
    """Runs a part. Returns the exit status: 1 if a column of this project did not run."""
    if os.environ.get("BENCH_WORDS"):  # bench/words.sh only wants to know whether the words are right
        _read_words()
        return 0
    settings = parse()
    # A signal raises an exception, so that jobs.run() ends its ranks.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    # Root of a container may run benchmarks. Open MPI loses help messages that it aggregates.
    os.environ.update(
        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_orte_base_help_aggregate="0"
    )
    if not settings.virtual:
        load.begin()
    tasks = PARTS[settings.part](settings)
    return int(any(task.own and task.skipped for task in tasks))


if __name__ == "__main__":
    sys.exit(main())
