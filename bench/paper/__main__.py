# SPDX-License-Identifier: BSD-3-Clause
"""The papers' figures, in virtual time, beside the papers' own numbers. bench/run.sh paper starts this."""

import argparse
import os
import signal
import sys
import time

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "driver"))

# pylint: disable=wrong-import-position
import barrier_figure
import bypass_figure
import computing
import depth_figure
import halo_figure
import overlap_figure
import report
import resources_figure
import sp_figure
import timeline
import virtual

FIGURES = {module.NAME: module for module in (overlap_figure, sp_figure, barrier_figure, depth_figure, bypass_figure, resources_figure, halo_figure)}


def knobs(text):
    """Returns the knobs of --knob."""
    try:
        return sp_figure.knobs(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(problem) from problem


def check_cases(parser, settings):
    """Ends the program if --cases doesn't name cases of the figure."""
    one = FIGURES[settings.figures[0]] if len(settings.figures) == 1 else None
    if not hasattr(one, "CHOICE"):
        parser.error(f"--cases goes with one figure of {', '.join(name for name, module in FIGURES.items() if hasattr(module, 'CHOICE'))}")
    if not set(settings.cases) <= set(one.CHOICE):
        parser.error(f"--cases wants some of {', '.join(one.CHOICE)}")


def make_parser():
    """Returns the parser of the options."""
    names = ", ".join(f"{name} ({module.TITLE})" for name, module in FIGURES.items())
    parser = argparse.ArgumentParser(prog="bench/run.sh paper", allow_abbrev=False, description=f"Figures: {names}. Without a name: all.")
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="of " + ", ".join(FIGURES))
    parser.add_argument(
        "--timeline",
        nargs="?",
        const="sp",
        choices=sorted(timeline.SUBJECTS),
        help="a picture instead of figures, of what ranks and adapters do: " + "; ".join(f"{name}: {one.title}" for name, one in timeline.SUBJECTS.items()),
    )
    parser.add_argument("--quick", action="store_true", help="a few points of each figure, to see that it can be made")
    parser.add_argument("--columns", metavar="A,B", help="only these columns")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds, in each of which every column runs once (3, quick: 1)")
    parser.add_argument("--cpu", type=float, default=1, metavar="FACTOR", help="factor of the programs' CPU time (1); 0: none, and work is a sleep")
    parser.add_argument(
        "--cases",
        metavar="LIST",
        type=lambda text: text.split(","),
        help="sp: classes and numbers of ranks, as A16,B64; B64-today has the link of today. barrier, resources: numbers of processes, as 32,64",
    )
    parser.add_argument("--steps", type=int, metavar="N", help="sp: run N steps, and say what all steps would take")
    parser.add_argument("--replay", action="store_true", help="sp: sleep, --cpu times as long as computing takes on one rank alone, instead of computing")
    parser.add_argument(
        "--computing",
        metavar="FILE",
        help="sp, with --replay: take the time of computing from FILE, and measure only classes and ranks that FILE lacks, which are added to it",
    )
    parser.add_argument("--knob", metavar="LIST", default=[], type=knobs, help="sp, with --replay, one or more of: " + "; ".join(sp_figure.KNOBS.values()))
    parser.add_argument("--seeds", action="store_true", help="sp, halo: vary the prices of verbs at random, by another seed in each round")
    parser.add_argument("--timeout", type=int, default=7200, metavar="S", help="time limit of one program (7200)")
    return parser


def check_options(parser, settings):
    """Ends the program if an option has a wrong value, or goes with another one that isn't there."""
    unknown = [name for name in settings.figures if name not in FIGURES]
    if unknown:
        parser.error(f"there is no figure {unknown[0]}; there are: {', '.join(FIGURES)}")
    if not 0 <= settings.cpu <= 1000:
        parser.error("--cpu wants a factor from 0 to 1000")
    if settings.timeline and settings.figures:
        parser.error("--timeline is a picture of its own: leave the figures out")
    if settings.steps is not None and settings.steps < 1:
        parser.error("--steps wants a positive number")
    if settings.knob and not settings.replay:
        parser.error("--knob goes with --replay")
    if settings.computing and not settings.replay:
        parser.error("--computing goes with --replay")
    if settings.cases:
        check_cases(parser, settings)
    if settings.rounds is not None and settings.rounds < 1:
        parser.error("--rounds wants a positive number")


def read_words():
    """Returns the parser and the settings: the options alone. Ends the program if a word is wrong."""
    parser = make_parser()
    settings = parser.parse_args()
    check_options(parser, settings)
    return parser, settings


def parse():
    """Returns the settings."""
    parser, settings = read_words()
    try:
        settings.sections = computing.load(settings.computing)
    except (OSError, ValueError) as problem:
        parser.error(f"--computing {settings.computing}: {problem}")
    if settings.timeline and timeline.SUBJECTS[settings.timeline].exact:
        settings.cpu = 0
    settings.rounds = settings.rounds or (1 if settings.quick or settings.timeline else 3)
    settings.top = os.environ["BENCH_TOP"]
    settings.programs = os.environ["BENCH_PROGRAMS"]
    settings.results = os.environ.get("BENCH_RESULTS") or os.path.join(settings.top, "bench", "results")
    settings.hostfile, settings.mpirun, settings.profile, settings.virtual = None, None, None, True
    return settings


def make(settings, module, part):
    """Makes a figure. Returns False if a column of this project did not run."""
    settings.part = part
    print(f"\n== {module.TITLE}\n")
    report.print_machine()
    print(virtual.describe(settings))
    print(f"Rounds: {settings.rounds}, columns in turn; medians over rounds, ± half the distance of the quartiles.")
    begun = time.monotonic()
    tasks = module.main(settings)
    report.print_skipped(tasks)
    print(f"This took {time.monotonic() - begun:.0f} s of real time.")
    return not any(task.own and (task.skipped or task.lost) for task in tasks)


def main():
    """Makes the figures. Returns the exit status: 1 if a column of this project did not run."""
    if os.environ.get("BENCH_WORDS"):  # bench/words.sh only wants to know whether the words are right
        read_words()
        return 0
    settings = parse()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    os.environ.update(
        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_orte_base_help_aggregate="0"
    )
    if settings.timeline:
        made = [make(settings, timeline, settings.timeline)]
    else:
        made = [make(settings, FIGURES[name], name) for name in settings.figures or FIGURES]
    return 0 if all(made) else 1


if __name__ == "__main__":
    sys.exit(main())
