/* SPDX-License-Identifier: BSD-3-Clause */
#include "say.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "series.h"

/* Bytes of stack with which Open MPI's output is safe: it takes 8 KiB, vfprintf() 2, and what is
 * above this function some more. */
#define ENOUGH_STACK (32u << 10)

/* Returns true if this thread was made with little stack. */
static bool has_small_stack(void)
{
	pthread_attr_t attr;
	size_t size = ENOUGH_STACK;

	/* The first thread's stack grows. To ask for its size would mean to read a file. */
	if (syscall(SYS_gettid) == getpid() || pthread_getattr_np(pthread_self(), &attr))
		return false;
	pthread_attr_getstacksize(&attr, &size);
	pthread_attr_destroy(&attr);
	return size < ENOUGH_STACK;
}

static void write_line(const char *component, const char *subject, const char *text)
{
	const char *pieces[] = {component, ", ", subject, ": ", text, "\n"};
	struct iovec iov[sizeof(pieces) / sizeof(*pieces)];
	int count = sizeof(pieces) / sizeof(*pieces);

	for (int i = 0; i < count; i++)
		iov[i] = (struct iovec){(void *)pieces[i], strlen(pieces[i])};
	while (writev(STDERR_FILENO, iov, count) < 0 && errno == EINTR)
		;
}

void mca_pml_tupleq_say(int verbosity, int stream, const char *component, const char *subject,
			const char *text)
{
	if (verbosity && opal_output_get_verbosity(stream) < verbosity)
		return;
	if (has_small_stack())
		write_line(component, subject, text);
	else
		opal_output(stream, "%s, %s: %s", component, subject, text);
}
