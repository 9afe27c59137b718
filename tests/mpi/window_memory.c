/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * window_memory.c - window_memory SIZE: a window of SIZE bytes can't be registered; or it can, but
 * not the buffer of a put of that size beside it. Rank 0 says which call failed, and the program
 * ends, for failures.sh. Two ranks or more.
 */
#include <limits.h>

#include "check.h"

int main(int argc, char **argv)
{
	char *window, *buffer;
	MPI_Aint size;
	MPI_Win win;
	int rc;

	t_init(&argc, &argv, 2);
	size = t_arg(argc, argv, 1, 0);
	t_true(size > 0 && size <= INT_MAX, "%lld bytes are no length of a put", (long long)size);
	window = t_alloc((size_t)size);
	buffer = t_alloc((size_t)size);
	memset(window, 0, (size_t)size);
	memset(buffer, 0, (size_t)size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	rc = MPI_Win_create(window, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	if (rc != MPI_SUCCESS) {
		if (t_rank == 0)
			printf("MPI_Win_create failed\n");
		return t_finish();
	}
	MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
	MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
	rc = MPI_Put(buffer, (int)size, MPI_CHAR, 1, 0, (int)size, MPI_CHAR, win);
	MPI_Win_unlock(1, win);
	if (t_rank == 0 && rc != MPI_SUCCESS)
		printf("MPI_Put failed\n");
	MPI_Win_free(&win);
	free(window);
	free(buffer);
	return t_finish();
}
