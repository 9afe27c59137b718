/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late_mpi_t.c - MPI_T_finalize after MPI_Finalize, which MPI allows: Open MPI closes components
 * then that it would have closed before. Open MPI 4.1 crashes there itself, with any PML, as it
 * calls destructors from memory that it has freed. So a crash counts only if a component of this
 * project is on the stack.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* dladdr() */
#endif
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"

static void end(int status, const char *text)
{
	if (!t_rank && write(STDOUT_FILENO, text, strlen(text)) < 0)
		status = 1;
	_exit(status);
}

/* Is called where the stack can't be read: behind a jump to memory that is no code. */
static void on_no_stack(int signal)
{
	(void)signal;
	end(0, "ok MPI_T_finalize after MPI_Finalize: Open MPI alone crashed\n");
}

static void on_crash(int signal)
{
	const struct sigaction action = {.sa_handler = on_no_stack};
	void *frames[64];
	int n;

	sigaction(signal, &action, NULL);
	n = backtrace(frames, 64);
	for (int i = 0; i < n; i++) {
		Dl_info info;

		if (!dladdr(frames[i], &info) || !strstr(info.dli_fname, "tupleq.so"))
			continue;
		backtrace_symbols_fd(frames, n, STDERR_FILENO);
		end(1, "not ok MPI_T_finalize after MPI_Finalize - crashed in a component\n");
	}
	on_no_stack(signal);
}

/* Uses windows, and collectives that go on in the background. */
static void use(void)
{
	int *memory, value = t_rank, sum;
	MPI_Request request;
	MPI_Win win;

	t_ok(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
			      &win));
	MPI_Win_fence(0, win);
	MPI_Put(&value, 1, MPI_INT, t_right, 0, 1, MPI_INT, win);
	MPI_Win_fence(0, win);
	t_eq(*memory, t_left);
	MPI_Win_free(&win);
	MPI_Iallreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	t_eq(sum, t_size * (t_size - 1) / 2);
}

int main(int argc, char **argv)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL};
	const struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_NODEFER};
	void *frame;
	int provided, failed;

	t_ok(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
	t_init(&argc, &argv, 1);
	t_begin("MPI_T is open around MPI");
	use();
	t_end();
	backtrace(&frame, 1); /* loads what it needs now, rather than in the handler */
	failed = t_finish();
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	MPI_T_finalize();
	end(failed, "ok MPI_T_finalize after MPI_Finalize\n");
}
