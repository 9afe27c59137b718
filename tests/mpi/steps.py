#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the instructions of each step of an 8-byte message: callgrind runs the windows of steps.c.

The messages go through pml/tupleq, or with Open MPI's own mtl/ofi through the provider of libfabric. Prints a line for
each step: the instructions of a message in the PML or the provider, in libtupleq, in the adapter's library and in all
else, and how many functions in how many files of the first two it passes, those that the compiler has put in line
included. A step that takes more than its budget has failed. Needs softhca in PATH, and the program in
$TEST_BUILD/tests/mpi.
"""
import argparse
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

PARTS = {"mca_pml_tupleq": "PML", "libtupleq-fi": "provider", "libtupleq": "libtupleq", "libsofthca": "adapter", "libmlx": "adapter"}
OURS = ("PML", "provider", "libtupleq")
STEPS = ("isend", "send", "irecv", "recv", "waitall", "test", "waitany", "testsome", "idle", "poll")
WINDOW = 16  # messages of a window: fewer than a sender has credits for
FIRST = 10  # windows that aren't counted, in which connections and queues are made. Of the others the median counts, because a poll may
# find nothing yet.
# A data cache that holds all that a message touches, and less than steps.c touches before each step.
COLD = ("--cache-sim=yes", "--D1=131072,8,64", "--LL=8388608,16,64")
# Under valgrind Open MPI reports no memory that is unmapped, so the PML asks for each buffer whether it is a GPU's.
NOT_COUNTED = ("mca_pml_tupleq_gpu_query", "first_object")

# Options of mpirun for the module. The provider's service thread would take messages in while their receiver waits for its turn.
PML = ["--mca", "pml", "tupleq", "--mca", "pml_tupleq_credits", str(4 * WINDOW)]
OFI = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "tupleq",
       "--mca", "opal_common_ofi_provider_include", "tupleq", "--mca", "mtl_ofi_data_progress", "manual", "-x", f"FI_TUPLEQ_CREDITS={4 * WINDOW}"]

# The jobs: the name of the way, options of mpirun, the kind of windows, the receives that are posted besides, and for
# each step the most instructions of a message in the PML or the provider and libtupleq together. The receives that wait make no
# difference.
EAGER = PML
DIRECT = [*PML, "--mca", "pml_tupleq_promote_after", "0"]
RUNS = [
    ("eager", EAGER, "posted", 1, {"isend": 680, "irecv": 430, "waitall": 850}),
    ("eager", EAGER, "early", 1, {"send": 710, "poll": 1050, "recv": 850}),
    ("eager", EAGER, "tested", 1, {"test": 95}),
    ("eager", EAGER, "any", 1, {"waitany": 850}),
    ("eager", EAGER, "some", 1, {"testsome": 830, "idle": 260}),
    ("eager", EAGER, "any", 1000, {"waitany": 850}),
    ("eager", EAGER, "some", 1000, {"testsome": 830, "idle": 260}),
    ("direct", DIRECT, "posted", 1, {"isend": 1280, "irecv": 950, "waitall": 720}),
]
# The jobs of --libfabric.
RUNS_OFI = [
    ("ofi", OFI, "posted", 1, {"isend": 770, "irecv": 670, "waitall": 1250}),
    ("ofi", OFI, "early", 1, {"send": 680, "recv": 2250}),
    ("ofi", OFI, "some", 1, {"idle": 290}),
    ("ofi-direct", [*OFI, "-x", "FI_TUPLEQ_PROMOTE_AFTER=0"], "posted", 1, {"isend": 1250, "irecv": 1100, "waitall": 930}),
]


class Dump:
    """A step's part of callgrind's output: instructions by (object, function), and executed addresses by object."""

    def __init__(self, path):
        self.step = None
        self.costs = collections.Counter()
        self.addresses = collections.defaultdict(set)
        self.misses = collections.Counter()  # of data, by object
        events = []
        names, ob, fn, address, skip = {}, None, None, 0, False
        with open(path) as lines:
            for line in lines:
                if line.startswith("desc: Trigger:"):
                    match = re.search(r"--dump-after=step_(\w+)", line)
                    self.step = match and match.group(1)
                elif line.startswith("events:"):
                    events = line.split()[1:]
                elif match := re.match(r"(c?)(ob|fn|fl|fi|fe|cfi)=\((\d+)\)(?: (.*))?", line):
                    kind = "file" if match.group(2) in ("fl", "fi", "fe", "cfi") else match.group(2)
                    name = names.setdefault((kind, match.group(3)), match.group(4))
                    if match.group(1):
                        continue
                    if kind == "ob":
                        ob = name
                    elif kind == "fn":
                        fn = name
                elif line.startswith("calls="):
                    skip = True
                elif line[0] in "0+-*":
                    position = line.split()[0]
                    if position == "*":
                        pass
                    elif position[0] in "+-":
                        address += int(position, 0)
                    else:
                        address = int(position, 0)
                    if not skip:
                        counts = dict(zip(events, map(int, line.split()[2:])))
                        self.costs[ob, fn] += counts["Ir"]
                        self.addresses[ob].add(address)
                        self.misses[ob] += counts.get("D1mr", 0) + counts.get("D1mw", 0)
                    skip = False


def part_of(ob, fn=""):
    if fn in NOT_COUNTED:
        return "else"
    name = os.path.basename(ob or "")
    return next((part for start, part in PARTS.items() if name.startswith(start)), "else")


def ours(dump):
    """The instructions of a window in the PML or the provider, and in libtupleq."""
    return sum(cost for (ob, fn), cost in dump.costs.items() if part_of(ob, fn) in OURS)


def functions(ob, addresses):
    """The functions at these addresses of an object, with those in line there, as pairs of file and name."""
    found = set()
    text = subprocess.run(["addr2line", "-i", "-f", "-a", "-e", ob], input="".join(f"{a:#x}\n" for a in addresses), text=True,
                          capture_output=True, check=True).stdout
    name = None
    for line in text.splitlines():
        if line.startswith("0x"):
            name = None
        elif name is None:
            name = line
        else:
            path = line.rsplit(":", 1)[0]
            if match := re.search("/(?:src/transport|src/libfabric|ompi-btl)/(.*)", path):
                found.add((os.path.relpath(match.group(1)), name))
            name = None
    return found


def run(options, kind, further, program, directory, window=WINDOW, counting=()):
    """Runs a job, and returns the dump of a window for each step."""
    command = ["timeout", "-k", "5", "300", "softhca", "run", "--nodes", "2", "--memlock", "unlimited", "--", "mpirun",
               "--allow-run-as-root", "--oversubscribe", "-n", "2", *options,
               "valgrind", "--tool=callgrind", f"--callgrind-out-file={directory}/counts.%p", "--dump-instr=yes", *counting,
               "--toggle-collect=step_*", *(f"--{what}=step_{step}" for step in STEPS for what in ("zero-before", "dump-after")),
               program, f"{directory}/turn", kind, str(window), str(further)]
    log = f"{directory}/log"
    with open(log, "w") as out:
        status = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT).returncode
    if status:
        sys.stderr.write("".join(f"# {line}" for line in open(log, errors="replace")))
        raise RuntimeError(f"the job ended with status {status}")
    steps = collections.defaultdict(list)
    paths = glob.glob(f"{directory}/counts.*.*")
    for path in sorted(paths, key=lambda p: [int(n) for n in p.rsplit(".", 2)[1:]]):
        dump = Dump(path)
        if dump.step:
            steps[dump.step].append(dump)
    return {step: sorted(dumps[FIRST:], key=ours)[(len(dumps) - FIRST) // 2] for step, dumps in steps.items()}


def measure(dump):
    """Instructions of a message by part, and the functions that it passes."""
    costs, passed = collections.Counter(), set()
    for (ob, fn), cost in dump.costs.items():
        costs[part_of(ob, fn)] += cost / WINDOW
    for ob, addresses in dump.addresses.items():
        if part_of(ob) in OURS:
            passed |= functions(ob, addresses)
    return costs, passed


def lines(dump, cold):
    """The cache lines of the PML's or the provider's and of libtupleq's code, and of the data that they read or write: the misses of one message in a cache
    where none of them is."""
    code = {(ob, address // 64) for ob, addresses in dump.addresses.items() if part_of(ob) in OURS for address in addresses}
    return len(code), sum(misses for ob, misses in cold.misses.items() if part_of(ob) in OURS)


def profile(dump):
    costs = collections.Counter()
    for (ob, fn), cost in dump.costs.items():
        costs[part_of(ob, fn), fn] += cost / WINDOW
    for (part, fn), cost in costs.most_common():
        if cost >= 0.5:
            print(f"{cost:8.1f}  {part:10} {fn}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", metavar="STEP", help="a step, as eager.isend: print its functions")
    parser.add_argument("--functions", metavar="STEP", help="a step: list the functions that it passes")
    parser.add_argument("--libfabric", action="store_true", help="the messages go with Open MPI's mtl/ofi through the provider")
    parser.add_argument("--lines", action="store_true", help="also count cache lines, of code and of data")
    options = parser.parse_args()
    program = os.path.join(os.environ["TEST_BUILD"], "tests/mpi/steps")
    only = options.profile or options.functions
    bad = False
    for tool in ("valgrind", "addr2line"):
        if not shutil.which(tool):
            print(f"ok steps # SKIP there is no {tool}")
            return 0
    for way, mpirun, kind, further, budgets in RUNS_OFI if options.libfabric else RUNS:
        if only and (only.split(".")[0] != way or only.split(".")[1] not in budgets):
            continue
        with tempfile.TemporaryDirectory() as directory:
            steps = run(mpirun, kind, further, program, directory)
        if options.lines:
            with tempfile.TemporaryDirectory() as directory:
                cold = run(mpirun, kind, further, program, directory, 1, COLD)
        for step, budget in budgets.items():
            if only and only.split(".")[1] != step:
                continue
            if options.profile:
                profile(steps[step])
                return 0
            costs, passed = measure(steps[step])
            user = "provider" if costs["provider"] else "PML"
            if options.functions:
                for file, name in sorted(passed):
                    print(file, name)
                return 0
            cost = sum(costs[part] for part in OURS)
            files = {file for file, _ in passed}
            print(f"{'ok' if cost <= budget else 'not ok'} {way}, {kind}: {step}{f', {further} more receives' if further > 1 else ''}: "
                  f"{user} {costs[user]:.0f} + libtupleq {costs['libtupleq']:.0f} of {budget}, adapter {costs['adapter']:.0f}, "
                  f"else {costs['else']:.0f}; {len(passed)} functions in {len(files)} files"
                  + (", lines of code and data: {} + {}".format(*lines(steps[step], cold[step])) if options.lines else ""), flush=True)
            bad |= cost > budget
    return bad


if __name__ == "__main__":
    sys.exit(main())
