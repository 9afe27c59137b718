# SPDX-License-Identifier: BSD-3-Clause
"""Where the programs run: on softhca's virtual nodes, or on the hosts of a hostfile, which have adapters of their own."""

import os
import shlex

import mpich
from jobs import Failed

# Options for more ranks than cores, so that ranks that wait yield their core.
_CROWDED = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]


def _hosts(path):
    """Returns the names in a hostfile, in their order."""
    with open(path, encoding="utf-8") as file:
        lines = [line.partition("#")[0].split() for line in file]
    return [words[0] for words in lines if words]


def use_softhca(settings):
    """Takes the settings that bench/mpi/run.sh has put into the environment."""
    settings.cores = os.environ["BENCH_CORES"]
    settings.softhca_options = os.environ["BENCH_SOFTHCA_OPTIONS"]
    settings.mpirun_options = os.environ["BENCH_MPIRUN_OPTIONS"].split() + settings.more_options
    if settings.mpirun:
        settings.crowded_options = ["-bind-to", "none", *settings.more_options]
        settings.one_node = mpich.genv(SOFTHCA_NODE="0")
    else:
        settings.crowded_options = _CROWDED + settings.more_options
        settings.one_node = ["-x", "SOFTHCA_NODE=0"]


def use_hosts(settings):
    """Places ranks on the hosts in turn, so two ranks are on two hosts. Raises OSError or ValueError if there is no host."""
    settings.hostfile = os.path.abspath(settings.hostfile)
    hosts = _hosts(settings.hostfile)
    if not hosts:
        raise ValueError(f"{settings.hostfile} names no host")
    settings.softhca_options = None
    common = ["--hostfile", settings.hostfile]
    if "LD_LIBRARY_PATH" in os.environ:
        common += ["-x", "LD_LIBRARY_PATH"]
    settings.mpirun_options = [*common, "--map-by", "node", "--bind-to", "core", *settings.more_options]
    settings.crowded_options = [*common, "--map-by", "node", *_CROWDED, *settings.more_options]
    settings.one_node = ["--host", f"{hosts[0]}:{settings.ranks}"]


def use(settings):
    """Sets the options that mpirun gets in every run."""
    settings.more_options = shlex.split(settings.more_options)
    if settings.hostfile:
        use_hosts(settings)
    else:
        use_softhca(settings)


def need_softhca(settings, figure):
    """Raises Failed on a hostfile's hosts, for a figure that only softhca has."""
    if settings.hostfile:
        raise Failed(f"{figure} needs softhca")
