# SPDX-License-Identifier: BSD-3-Clause
"""Python objects between all ranks: sends of every mode, wildcards, probes, collectives."""
from part import MPI, SIZES, pattern, rank, run, size, value, world

ANY, TAG = MPI.ANY_SOURCE, MPI.ANY_TAG
right, left = (rank + 1) % size, (rank - 1) % size
others = [r for r in range(size) if r != rank]


def ring():
    for salt in range(3):
        for n in SIZES:
            got = world.sendrecv(value(rank, n, salt), right, salt, None, left, salt)
            assert got == value(left, n, salt)


def modes():
    MPI.Attach_buffer(bytearray(4000000))
    for send in world.isend, world.issend, world.ibsend:
        for n in SIZES:
            request = send(value(rank, n), right, 5)
            assert world.recv(source=left, tag=5) == value(left, n)
            request.wait()
    MPI.Detach_buffer()


def any_source_any_tag():
    for n in SIZES[:9]:
        sends = [world.isend(value(rank, n, t), r, t) for r in others for t in range(4)]
        seen = set()
        for _ in range(4 * len(others)):
            status = MPI.Status()
            got = world.recv(source=ANY, tag=TAG, status=status)
            assert got == value(status.source, n, status.tag)
            seen.add((status.source, status.tag))
        assert len(seen) == 4 * len(others)
        MPI.Request.waitall(sends)
        world.Barrier()


def wildcards_come_and_go():
    """Receives of one tuple by source and tag, from any source, and with any tag: messages come in order."""
    for r in range(60):
        n = SIZES[r % 9]
        sends = [world.isend(value(rank, n, 10 * r + k), right, 3) for k in range(6)]
        for k in range(6):
            source, tag = [(left, 3), (ANY, 3), (left, TAG)][(r // 4 + k) % 3]
            assert world.recv(source=source, tag=tag) == value(left, n, 10 * r + k)
        MPI.Request.waitall(sends)
        world.Barrier()


def receives_first():
    for n in SIZES[:9]:
        receives = [world.irecv(bytearray(n + 500), source=r, tag=t) for t in range(3) for r in others]
        sends = [world.isend(value(rank, n, t), r, t) for t in range(2, -1, -1) for r in others]
        got = MPI.Request.waitall(receives)
        assert got == [value(r, n, t) for t in range(3) for r in others]
        MPI.Request.waitall(sends)


def probes():
    for n in SIZES:
        send = world.isend(value(rank, n), right, 11)
        status = MPI.Status()
        while not world.iprobe(source=ANY, tag=TAG, status=status):
            pass
        assert (status.source, status.tag) == (left, 11) and status.Get_count() >= n
        world.probe(source=left, tag=11)
        assert world.recv(source=left, tag=11) == value(left, n)
        send.wait()
        assert not world.iprobe(source=left, tag=12)


def matched_probes():
    for n in SIZES:
        sends = [world.isend(value(rank, n, k), right, 13) for k in range(4)]
        first = world.mprobe(source=ANY, tag=13)
        second = None
        while second is None:
            second = world.improbe(source=left, tag=TAG)
        assert world.recv(source=left, tag=13) == value(left, n, 2)
        later = second.irecv()
        assert world.recv(source=ANY, tag=13) == value(left, n, 3)
        assert later.wait() == value(left, n, 1)
        assert first.recv() == value(left, n, 0)
        MPI.Request.waitall(sends)
        world.Barrier()


def persistent():
    for n in SIZES:
        out, into = bytearray(n), bytearray(n)
        send = world.Send_init([out, MPI.BYTE], right, 17)
        receive = world.Recv_init([into, MPI.BYTE], ANY if n % 3 else left, 17)
        for salt in range(8):
            out[:] = pattern(rank, n, salt)
            MPI.Prequest.Startall([receive, send])
            MPI.Request.Waitall([receive, send])
            assert into == pattern(left, n, salt)
        send.Free()
        receive.Free()


def cancelled():
    for n in SIZES[:9]:
        into = bytearray(n)
        for source in left, ANY:
            request = world.Irecv([into, MPI.BYTE], source, 19)
            request.Cancel()
            status = MPI.Status()
            request.Wait(status)
            assert status.Is_cancelled()
        world.Barrier()
        send = world.Isend([pattern(rank, n), MPI.BYTE], right, 19)
        world.Recv([into, MPI.BYTE], left, 19)
        assert into == pattern(left, n)
        send.Wait()


def truncated():
    """Small messages only, because Open MPI's pml/ob1 aborts at large ones."""
    world.Set_errhandler(MPI.ERRORS_RETURN)
    for n in SIZES[2:5]:
        for posted in True, False:
            into = bytearray(n // 2)
            world.Barrier()
            if posted:
                receive = world.Irecv([into, MPI.BYTE], left, 23)
                world.Barrier()
                send = world.Isend([pattern(rank, n), MPI.BYTE], right, 23)
            else:
                send = world.Isend([pattern(rank, n), MPI.BYTE], right, 23)
                world.Barrier()
                receive = world.Irecv([into, MPI.BYTE], left, 23)
            try:
                receive.Wait()
                raise AssertionError("no error")
            except MPI.Exception as e:
                assert e.Get_error_class() == MPI.ERR_TRUNCATE
            send.Wait()
    world.Set_errhandler(MPI.ERRORS_ARE_FATAL)


def collectives():
    for n in SIZES[:10]:
        for root in range(size):
            assert world.bcast(value(rank, n) if rank == root else None, root) == value(root, n)
            got = world.scatter([value(rank, n, r) for r in range(size)] if rank == root else None, root)
            assert got == value(root, n, rank)
            got = world.gather(value(rank, n), root)
            assert got == ([value(r, n) for r in range(size)] if rank == root else None)
        assert world.allgather(value(rank, n)) == [value(r, n) for r in range(size)]
        assert world.alltoall([value(rank, n, r) for r in range(size)]) == [value(r, n, rank) for r in range(size)]
    assert world.allreduce(rank + 1) == size * (size + 1) // 2
    assert world.allreduce([rank], op=lambda a, b: a + b) == list(range(size))
    assert world.scan(rank) == rank * (rank + 1) // 2


run(ring, modes, any_source_any_tag, wildcards_come_and_go, receives_first, probes, matched_probes, persistent,
    cancelled, truncated, collectives)
