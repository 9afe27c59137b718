# SPDX-License-Identifier: BSD-3-Clause
"""The clusters of the papers, in virtual time: commands that run a program on one, in a fabric of its own."""

import json
import os
import re
import shlex
import tempfile
from dataclasses import dataclass

import jobs

PAPER_LINK = "latency=1.3us,bandwidth=1.5GB/s"  # the adapters of 2009
TODAY_LINK = "latency=600ns,bandwidth=25GB/s"  # 200 Gb/s


@dataclass(frozen=True)
class Cluster:
    """Nodes with an adapter each, and ranks that go to the nodes in turn."""

    nodes: int
    ranks: int
    link: str = PAPER_LINK

    def text(self):
        """Returns a description."""
        return f"{self.ranks} ranks on {self.nodes} nodes, link {self.link}"


def _fabric(settings, cluster, cpu=None, seed=0):
    return [
        *("softhca", "run", "--nodes", str(cluster.nodes), "--memlock", "unlimited"),
        *("--clock", "virtual", "--clock-cpu", f"{settings.cpu if cpu is None else cpu:g}", "--clock-tsc", "trap", "--link", cluster.link),
        *("--clock-seed", str(seed)),
    ]


def _mpirun(settings, cluster, column, program, arguments):
    return [
        *("mpirun", "-n", str(cluster.ranks), "--oversubscribe", "--bind-to", "none", *column.options, *column.softhca_options),
        os.path.join(settings.programs, program),
        *arguments,
    ]


def run(settings, cluster, column, program, *arguments, trace=None, cpu=None):
    """Runs a program that prints JSON. Returns its objects. `trace`: a file for softhca's trace. `cpu`: another factor than the settings'."""
    traced = ["--trace", trace] if trace else []
    command = [*_fabric(settings, cluster, cpu), *traced, "--", *_mpirun(settings, cluster, column, program, arguments)]
    return jobs.run_json(command, settings.timeout)


# A line of pml/tupleq's report.
_MATCHED = re.compile(r"The HCA matched (\d+) of (\d+) messages")


def run_matched(settings, cluster, column, program, *arguments, cpu=None, seed=0):
    """Runs a program that prints JSON. Returns its objects. With pml/tupleq they also have the share of all messages of the run that
    the adapters matched, as "matched"."""
    # The report goes to the standard error output.
    reporting = ["env", "OMPI_MCA_pml_tupleq_stats=1", "sh", "-c", 'exec "$@" 2>&1', "sh", *_mpirun(settings, cluster, column, program, arguments)]
    share = {}

    def look(line):
        said = _MATCHED.search(line)
        if said:
            share["matched"] = int(said[1]) / int(said[2])

    objects = jobs.run_json([*_fabric(settings, cluster, cpu, seed), "--", *reporting], settings.timeout, each_text=look)
    return [{**one, **share} for one in objects]


OPERATIONS = ("sends", "writes", "reads", "atomics")


def count(settings, cluster, column, program, arguments):
    """Runs a program once for each list of arguments, in one fabric. Returns for each run the operations of every adapter."""
    with tempfile.TemporaryDirectory() as folder:
        steps = []
        for number, each in enumerate([None, *arguments]):
            if each is not None:
                steps.append(shlex.join(_mpirun(settings, cluster, column, program, each)) + " >/dev/null")
            steps.append(f"softhca stat --json >{shlex.quote(os.path.join(folder, str(number)))}")
        jobs.run([*_fabric(settings, cluster), "--", "sh", "-ec", "\n".join(steps)], settings.timeout)
        totals = []
        for number in range(len(arguments) + 1):
            with open(os.path.join(folder, str(number)), encoding="utf-8") as file:
                hcas = json.load(file)["hcas"]
            totals.append([sum(hca["counters"][name] for name in OPERATIONS) for hca in hcas])
    return [[after - before for before, after in zip(*pair)] for pair in zip(totals, totals[1:])]
