/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * small_stack.h - a thread with PTHREAD_STACK_MIN bytes of stack, and how much of it a function
 * needs. Below the stack is more memory. Both are filled with a pattern, so that a function that
 * needs too much doesn't crash, and the test says how much it is. Include it behind _GNU_SOURCE.
 */
#ifndef T_SMALL_STACK_H
#define T_SMALL_STACK_H

#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "expect.h"

struct t_small {
	void (*run)(void *arg);
	void *arg;
};

static inline void *t_small_body(void *arg)
{
	const struct t_small *small = arg;

	small->run(small->arg);
	return NULL;
}

/* Calls run(arg) in such a thread. Returns how many bytes of the stack were used, with the data
 * that each thread has there. */
static inline size_t t_small_stack(void (*run)(void *arg), void *arg)
{
	enum { MAPPED = 256 << 10, PATTERN = 0xa5 };
	size_t size = (size_t)PTHREAD_STACK_MIN, unused = 0;
	struct t_small small = {run, arg};
	pthread_attr_t attr;
	pthread_t thread;
	unsigned char *stack =
		mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	t_holds(stack != MAP_FAILED && size < MAPPED);
	memset(stack, PATTERN, MAPPED);
	t_ok(pthread_attr_init(&attr));
	t_ok(pthread_attr_setstack(&attr, stack + MAPPED - size, size));
	t_ok(pthread_create(&thread, &attr, t_small_body, &small));
	t_ok(pthread_join(thread, NULL));
	t_ok(pthread_attr_destroy(&attr));
	while (unused < MAPPED && stack[unused] == PATTERN)
		unused++;
	munmap(stack, MAPPED);
	return MAPPED - unused;
}

/* Calls run(arg) in such a thread, and checks that no more than `most` bytes were used. */
static inline void t_needs_stack(const char *what, size_t most, void (*run)(void *arg), void *arg)
{
	size_t used = t_small_stack(run, arg);

	t_true(used <= most, "%s: %zu bytes of the stack were used, more than %zu", what, used,
	       most);
}

#endif
