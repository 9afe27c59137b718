# SPDX-License-Identifier: BSD-3-Clause
"""MPICH instead of Open MPI (--mpirun): its mpiexec, hydra, has options of its own."""

import os
import re
import subprocess

# The parts whose programs and figures are the same for any MPI.
PARTS = ("overlap", "latency", "bandwidth", "rate", "depth")


def genv(**variables):
    """Returns options of hydra that set environment variables of all ranks."""
    return tuple(word for name, value in variables.items() for word in ("-genv", name, value))


def _output(*command):
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def version(mpiexec):
    """Returns the lines of mpichversion that tell the version and the device, as a dictionary."""
    lines = re.findall(r"^MPICH (Version|Device):\s*(\S+)", _output(os.path.join(os.path.dirname(mpiexec), "mpichversion")), re.M)
    return {name.lower(): value for name, value in lines}


def why_not(mpiexec):
    """Returns why a program is no mpiexec whose ranks can use libfabric's providers, or None."""
    if not os.path.isfile(mpiexec) or not os.access(mpiexec, os.X_OK):
        return f"{mpiexec} is no program"
    if not _output(mpiexec, "--version").startswith("HYDRA"):
        return f"{mpiexec} is not MPICH's mpiexec (hydra); Open MPI needs no --mpirun"
    mpicc = os.path.join(os.path.dirname(mpiexec), "mpicc")
    if not os.access(mpicc, os.X_OK):
        return f"there is no compiler {mpicc} for the programs"
    device = version(mpiexec).get("device", "nothing known")
    if device != "ch4:ofi":
        return f"the MPICH of {mpiexec} is built for {device}; libfabric's providers need ch4:ofi"
    return None
