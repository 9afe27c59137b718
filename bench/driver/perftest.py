# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs of perftest between softhca's nodes."""

import os
import re

import jobs
import place


def figures(settings, program, *arguments):
    """Runs a server and a client on two nodes, bound as ranks are. Returns the fields of the last line of figures."""
    place.need_softhca(settings, "perftest between its nodes")
    pair = os.path.join(settings.top, "tests", "clients", "pair")
    pinned = os.path.join(settings.top, "bench", "mpi", "pinned")
    bound = [pinned, settings.cores] if "," in settings.cores else []
    said = jobs.run([pair, "1", *bound, program, "-F", *arguments], settings.timeout)
    lines = [line.split() for line in said.splitlines() if re.match(r"\s*\d+\s+\d+\s", line)]
    if not lines:
        raise jobs.Failed(f"{program} printed no figures", said)
    return lines[-1]


def typical(fields):
    """Returns t_typical, in us, of a line of latencies. Programs in which the message comes back print half a round trip."""
    return float(fields[4])


def least(fields):
    """Returns t_min, in us, of a line of latencies."""
    return float(fields[2])


def gigabytes(fields):
    """Returns the average bandwidth, in GB/s, of a line that was asked for by --report_gbits."""
    return float(fields[3]) / 8
