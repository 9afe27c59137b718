# SPDX-License-Identifier: BSD-3-Clause
"""The results of mpi4py.futures on its workers are the results of this process."""
from mpi4py.futures import MPIPoolExecutor


def work(n, text="x"):
    return [n * i for i in range(n % 97)], text * n


def fail(n):
    raise ValueError(n)


if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        sizes = [1, 10, 500, 20000, 3, 90000] * 8
        assert list(pool.map(work, sizes)) == [work(n) for n in sizes]
        assert list(pool.map(work, range(300), chunksize=7)) == [work(n) for n in range(300)]
        futures = [pool.submit(work, n, text="ab") for n in sizes]
        assert [f.result() for f in futures] == [work(n, "ab") for n in sizes]
        assert pool.submit(fail, 7).exception().args == (7,)
    print("ok pool")
