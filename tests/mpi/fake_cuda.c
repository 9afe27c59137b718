/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for libcuda.so.1, with the one function that pml/tupleq calls; fake_memory() says what
 * memory is a GPU's.
 */
#include <stddef.h>
#include <stdint.h>

#include "fake_gpu.h"

enum { MEMORY_TYPE = 2, IS_MANAGED = 8, TYPE_HOST = 1, TYPE_DEVICE = 2, INVALID_VALUE = 1 };

static struct {
	uintptr_t from, to;
} areas[FAKE_KINDS];

void fake_memory(enum fake_kind kind, void *addr, size_t len)
{
	areas[kind].from = (uintptr_t)addr;
	areas[kind].to = (uintptr_t)addr + len;
}

int cuPointerGetAttribute(void *data, int attribute, unsigned long long ptr)
{
	int kind;

	for (kind = 0; kind < FAKE_KINDS; kind++) {
		if (ptr < areas[kind].from || ptr >= areas[kind].to)
			continue;
		if (attribute == MEMORY_TYPE)
			*(unsigned *)data = kind == FAKE_DEVICE ? TYPE_DEVICE : TYPE_HOST;
		else if (attribute == IS_MANAGED)
			*(unsigned *)data = kind == FAKE_MANAGED;
		else
			return INVALID_VALUE;
		return 0;
	}
	return INVALID_VALUE;
}
