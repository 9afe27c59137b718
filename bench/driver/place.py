# SPDX-License-Identifier: BSD-3-Clause
"""Where the programs run: on the virtual nodes of softhca, or on the hosts of a hostfile with adapters of their own."""

import os
import shlex

from jobs import Failed

# More ranks than cores: those that wait let the others run.
_CROWDED = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]


def _hosts(path):
    """The names in a hostfile, in their order."""
    with open(path, encoding="utf-8") as file:
        lines = [line.partition("#")[0].split() for line in file]
    return [words[0] for words in lines if words]


def use_softhca(settings):
    """As bench/mpi/run.sh has put it into the environment."""
    settings.cores = os.environ["BENCH_CORES"]
    settings.softhca_options = os.environ["BENCH_SOFTHCA_OPTIONS"]
    settings.mpirun_options = os.environ["BENCH_MPIRUN_OPTIONS"].split() + settings.more_options
    settings.crowded_options = _CROWDED + settings.more_options
    settings.one_node = ["-x", "SOFTHCA_NODE=0"]


def use_hosts(settings):
    """Ranks go to the hosts in turn, so two are on two hosts. Raises OSError or ValueError where there are no hosts."""
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
    """Settles what mpirun is told in any case."""
    settings.more_options = shlex.split(settings.more_options)
    if settings.hostfile:
        use_hosts(settings)
    else:
        use_softhca(settings)


def need_softhca(settings, what):
    """For what real adapters can't tell, or hosts can't be used for."""
    if settings.hostfile:
        raise Failed(f"{what} needs softhca")
