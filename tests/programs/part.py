# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the scripts: a part of a test on all ranks, and values that tell their source."""
import random
import sys
import traceback

import mpi4py

# Not the default, MPI_THREAD_MULTIPLE: some parts of Open MPI don't support it, and others are slower with it.
if "serialized" in sys.argv:
    mpi4py.rc.thread_level = "serialized"
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
# Below, at and above every limit of the protocols.
SIZES = [0, 1, 100, 1000, 4000, 8000, 8500, 30000, 70000, 300000, 1500000]


def value(source, n, salt=0):
    """Returns an object of about n bytes that no other (source, n, salt) has."""
    r = random.Random(f"{source} {n} {salt}")
    return {"source": source, "n": n, "salt": salt, "bytes": r.randbytes(n), "list": [source] * (n % 13)}


def pattern(source, n, salt=0):
    """Returns n bytes."""
    return bytearray(random.Random(f"{source} {n} {salt}").randbytes(n))


def run(*parts):
    """Runs each part on all ranks. A part that fails on any rank ends the program."""
    for part in parts:
        try:
            part()
        except BaseException:
            print(f"not ok {part.__name__}, rank {rank}", flush=True)
            traceback.print_exc()
            world.Abort(1)
        world.Barrier()
        if rank == 0:
            print(f"ok {part.__name__}", flush=True)
