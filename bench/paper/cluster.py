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
    shared: bool = False  # ranks of a node wait for each other in shared memory

    def text(self):
        """Returns a description."""
        return f"{self.ranks} ranks on {self.nodes} nodes, link {self.link}"


def _fabric(settings, cluster, cpu=None, seed=0):
    # Before Linux 6.11 nothing tells softhca of a write to shared memory, so a rank that waits for one has to look often.
    looks = ["--clock-look", "100ns"] if cluster.shared else []
    return [
        *("softhca", "run", "--nodes", str(cluster.nodes), "--memlock", "unlimited"),
        *("--clock", "virtual", "--clock-cpu", f"{settings.cpu if cpu is None else cpu:g}", "--clock-tsc", "trap", "--link", cluster.link),
        *("--clock-seed", str(seed), *looks),
    ]


def _mpirun(settings, cluster, column, program, arguments):
    # Each rank has a CPU of its own, so no rank yields it, as Open MPI would have it for more ranks than CPUs.
    crowd = ("--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "0")
    return [
        *("mpirun", "-n", str(cluster.ranks), *crowd, *column.options, *column.softhca_options),
        os.path.join(settings.programs, program),
        *arguments,
    ]


def run(settings, cluster, column, program, *arguments, trace=None, cpu=None, queues=False):
    """Runs a program that prints JSON. Returns its objects. `trace`: a file for softhca's trace. `cpu`: another factor than the settings'.
    `queues`: messages of any length go to tuple queues, as in the paper."""
    traced = ["--trace", trace] if trace else []
    always = ("env", "OMPI_MCA_pml_tupleq_promote_after=0") if queues else ()
    command = [*_fabric(settings, cluster, cpu), *traced, "--", *always, *_mpirun(settings, cluster, column, program, arguments)]
    return jobs.run_json(command, settings.timeout)


# A line of pml/tupleq's report.
_MATCHED = re.compile(r"The HCA matched (\d+) of (\d+) messages")


def run_matched(settings, cluster, column, program, *arguments, cpu=None, seed=0):
    """Runs a program that prints JSON. Returns its objects. With pml/tupleq they also have the share of all messages of the run that
    the adapters matched, as "matched"."""
    # The report goes to the standard error output. mpirun writes it in parts of 4096 bytes, so in one stream the result would come amid
    # a line of the report at times.
    reporting = ["env", "OMPI_MCA_pml_tupleq_stats=1", *_mpirun(settings, cluster, column, program, arguments)]
    share = {}

    def look(line):
        said = _MATCHED.search(line)
        if said:
            share["matched"] = int(said[1]) / int(said[2])

    objects = jobs.run_json([*_fabric(settings, cluster, cpu, seed), "--", *reporting], settings.timeout, each_message=look)
    return [{**one, **share} for one in objects]


OPERATIONS = ("sends", "writes", "reads", "atomics")


def _operations(path):
    """Returns the operations of each adapter so far, from the output of `softhca stat`."""
    with open(path, encoding="utf-8") as file:
        return [sum(hca["counters"][name] for name in OPERATIONS) for hca in json.load(file)["hcas"]]


def _objects(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def count(settings, cluster, column, program, arguments):
    """Runs a program that prints JSON once for each list of arguments, in one fabric. Returns for each run its objects, and the
    operations of every adapter."""
    with tempfile.TemporaryDirectory() as folder:
        said = [os.path.join(folder, f"said{number}") for number in range(len(arguments))]
        stat = [os.path.join(folder, f"stat{number}") for number in range(len(arguments) + 1)]
        steps = [f"softhca stat --json >{shlex.quote(stat[0])}"]
        for number, each in enumerate(arguments):
            steps.append(f"{shlex.join(_mpirun(settings, cluster, column, program, each))} >{shlex.quote(said[number])}")
            steps.append(f"softhca stat --json >{shlex.quote(stat[number + 1])}")
        jobs.run([*_fabric(settings, cluster), "--", "sh", "-ec", "\n".join(steps)], settings.timeout)
        totals = [_operations(path) for path in stat]
        done = [[after - before for before, after in zip(*pair)] for pair in zip(totals, totals[1:])]
        return list(zip([_objects(path) for path in said], done))
