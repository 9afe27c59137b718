# SPDX-License-Identifier: BSD-3-Clause
"""Virtual time: which parts have figures in it, and how much they repeat there."""

# These parts have a virtual form. The others count objects, or measure the machine itself.
PARTS = ("overlap", "latency", "rate", "halo", "sp", "patterns", "barrier", "icoll", "fft", "rma", "portals")
ROUNDS = 3
TIMEOUT = 900

# The reason why columns and cases whose ranks wait in shared memory have no figure on some machines.
NOT_MODELLED = "this kernel doesn't tell virtual time of writes to shared memory (Linux 6.11 does)"


def is_exact(settings):
    """Returns true if CPU time doesn't count, so that repeats are alike."""
    return settings.virtual and settings.cpu == 0


def effort(settings, real, virtual, exact=None):
    """Returns a program's options for its repeats: in real time, in virtual time, and in exact virtual time."""
    if not settings.virtual:
        return list(real)
    return list(exact if exact and is_exact(settings) else virtual)


def work(settings):
    """Returns a program's option for its work: work that computes would take no time if CPU time doesn't count."""
    return ["--sleep"] if is_exact(settings) else []


def describe(settings):
    """Returns a sentence about the time of the figures, and one about the adapters if a profile describes them."""
    return _describe_time(settings) + (f" The adapters are those of the profile {settings.profile}." if settings.profile else "")


def _describe_time(settings):
    """Returns a sentence about the time of the figures."""
    if not is_exact(settings):
        return f"Virtual time: programs take their CPU time on this machine x {settings.cpu:g}, as if each rank had a CPU."
    computing = "computing takes no time" if settings.part == "sp" else "the programs' work is a sleep"
    return f"Virtual time without CPU time: only links, verbs and sleeps take time, and {computing}."
