# SPDX-License-Identifier: BSD-3-Clause
"""Communicators that come and go, windows, and processes that join."""
import sys
from array import array

from part import MPI, SIZES, rank, run, size, value, world

right, left = (rank + 1) % size, (rank - 1) % size


def ring(comm, n, salt):
    to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    assert comm.sendrecv(value(comm.rank, n, salt), to, 1, None, source, 1) == value(source, n, salt)


def dup_split_create():
    for salt in range(12):
        n = SIZES[salt % 9]
        send = world.isend(value(rank, n, salt), right, 1)
        dup = world.Dup()
        half = world.Split(rank % 2, -rank)
        group = world.group.Excl([0])
        rest = world.Create(group)
        for comm in dup, half, rest:
            if comm != MPI.COMM_NULL:
                ring(comm, n, salt)
                comm.Free()
        assert world.recv(source=left, tag=1) == value(left, n, salt)
        send.wait()


def many():
    comms = [world.Dup() for _ in range(40)]
    for salt in range(3):
        sends = [c.isend(value(rank, 5000, i), right, 1) for i, c in enumerate(comms)]
        for i in range(len(comms) - 1, -1, -1):
            assert comms[i].recv(source=[left, MPI.ANY_SOURCE][salt % 2], tag=1) == value(left, 5000, i)
        MPI.Request.waitall(sends)
    for c in comms:
        c.Free()


def topologies():
    cart = world.Create_cart([size], periods=[True])
    assert cart.neighbor_allgather(value(rank, 9000)) == [value(left, 9000), value(right, 9000)]
    graph = world.Create_dist_graph_adjacent([left], [right])
    assert graph.neighbor_alltoall([value(rank, 9000, 1)]) == [value(left, 9000, 1)]
    cart.Free()
    graph.Free()


def inter():
    local = world.Split(rank % 2, rank)
    comm = local.Create_intercomm(0, world, 1 - rank % 2, 7)
    if local.rank < comm.remote_size:
        for n in SIZES:
            send = comm.isend(value(rank, n), local.rank, 2)
            status = MPI.Status()
            got = comm.recv(source=MPI.ANY_SOURCE, tag=2, status=status)
            assert status.source == local.rank and got == value(got["source"], n) and got["source"] % 2 != rank % 2
            send.wait()
    merged = comm.Merge(rank % 2 == 1)
    ring(merged, 20000, 0)
    for c in merged, comm, local:
        c.Free()


def windows():
    n = 5000
    memory = array("i", [0] * n)
    window = MPI.Win.Create(memory, 4, comm=world)
    for salt in range(6):
        data = array("i", [rank * 100000 + salt * n + i for i in range(n)])
        window.Fence()
        window.Put([data, MPI.INT], right)
        window.Fence()
        assert list(memory) == [left * 100000 + salt * n + i for i in range(n)]
        got = array("i", [0] * n)
        window.Lock(left, MPI.LOCK_SHARED)
        window.Get([got, MPI.INT], left)
        window.Unlock(left)
        there = (left - 1) % size
        assert list(got) == [there * 100000 + salt * n + i for i in range(n)]
    window.Free()


def counter():
    memory = array("q", [0, 0])
    window = MPI.Win.Create(memory, 8, comm=world)
    one, old = array("q", [1]), array("q", [0])
    seen = []
    window.Lock_all()
    for _ in range(30):
        window.Fetch_and_op([one, MPI.INT64_T], [old, MPI.INT64_T], 0, 0, MPI.SUM)
        window.Flush(0)
        seen.append(old[0])
    window.Unlock_all()
    assert seen == sorted(seen)
    every = world.allgather(seen)
    assert sorted(x for s in every for x in s) == list(range(30 * size))
    window.Lock_all()
    for r in range(size):
        window.Accumulate([one, MPI.INT64_T], r, 1, MPI.SUM)
    window.Unlock_all()
    world.Barrier()
    window.Lock(rank, MPI.LOCK_EXCLUSIVE)
    assert memory[1] == size
    window.Unlock(rank)
    window.Free()


def spawned():
    """Two children that each send to every parent; then one communicator of all."""
    children = world.Spawn(sys.executable, ["-B", __file__, "child"], maxprocs=2)
    talk(children, 0)


def talk(inter, low):
    came = [0] * inter.remote_size
    for n in SIZES:
        sends = [inter.isend(value(inter.rank, n, low), r, 3) for r in range(inter.remote_size)]
        for _ in range(inter.remote_size):
            status = MPI.Status()
            got = inter.recv(source=MPI.ANY_SOURCE, tag=3, status=status)
            assert got == value(status.source, SIZES[came[status.source]], 1 - low)
            came[status.source] += 1
        MPI.Request.waitall(sends)
    merged = inter.Merge(low == 1)
    ring(merged, 20000, 0)
    ring(merged, 20, 0)
    merged.Free()
    inter.Disconnect()


if "child" in sys.argv:
    talk(MPI.Comm.Get_parent(), 1)
elif "windows" in sys.argv:
    run(windows, counter)
elif "spawn" in sys.argv:
    run(spawned)
else:
    run(dup_split_create, many, topologies, inter)
