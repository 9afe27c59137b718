/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_data.c - see coll_data.h. */
#include "check.h"
#include "coll_data.h"

int coll_value(const struct coll *coll, int rank, int i)
{
	return (int)((unsigned int)rank * 1000003u + (unsigned int)i * 7u +
		     (unsigned int)coll->salt * 101u);
}

void coll_fill(const struct coll *coll, int *p, int n, int rank, int from)
{
	int i;

	for (i = 0; i < n; i++)
		p[i] = coll_value(coll, rank, from + i);
}

void coll_expect(const struct coll *coll, const int *p, int n, int rank, int from, const char *what)
{
	int i;

	for (i = 0; i < n; i++)
		t_true(p[i] == coll_value(coll, rank, from + i),
		       "%s of %d elements, %d ranks: element %d from rank %d is %d, not %d", what,
		       coll->n, coll->size, from + i, rank, p[i], coll_value(coll, rank, from + i));
}

void coll_wait(MPI_Request *req)
{
	int flag = 0, i;

	for (i = 0; i < 3 && !flag; i++)
		MPI_Test(req, &flag, MPI_STATUS_IGNORE);
	if (!flag)
		MPI_Wait(req, MPI_STATUS_IGNORE);
}
