# SPDX-License-Identifier: BSD-3-Clause
"""How busy other programs keep this machine during a run, whose figures are worthless then."""

import os
import resource
import time

_begun = None  # the seconds of use, the own part of them, and the time when the run began


def _used():
    """Returns the CPU seconds that all programs have used, and that other virtual machines have taken."""
    with open("/proc/stat", encoding="utf-8") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")  # without idle, and waiting for a disk


def _own():
    """Returns the CPU seconds of this program and of the programs that it has run."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def begin():
    """Begins to look at the load."""
    global _begun
    _begun = _used(), _own(), time.monotonic()


def busy():
    """Returns how busy the machine is by other programs, as "1.60 of 2", or nothing if figures are worth something. bench/run.sh has
    looked before its build; since then the use of CPUs counts that isn't of the run's own programs."""
    if not _begun:
        return ""
    used, own, start = _begun
    passed = time.monotonic() - start
    others = (_used() - used - (_own() - own)) / passed if passed > 1 else 0
    cpus = os.cpu_count()
    return os.environ.get("BENCH_BUSY") or (f"{others:.2f} of {cpus}" if others > cpus / 2 else "")
