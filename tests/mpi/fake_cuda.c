/* SPDX-License-Identifier: BSD-3-Clause */
/* A stand-in for libcuda.so.1, with the one function that pml/tupleq calls. */
#include "fake_gpu.h"

enum { MEMORY_TYPE = 2, IS_MANAGED = 8, TYPE_HOST = 1, TYPE_DEVICE = 2, INVALID_VALUE = 1 };

int cuPointerGetAttribute(void *data, int attribute, unsigned long long ptr)
{
	enum fake_kind kind = fake_kind_of((uintptr_t)ptr);

	if (kind == FAKE_NONE)
		return INVALID_VALUE;
	if (attribute == MEMORY_TYPE)
		*(unsigned *)data = kind == FAKE_DEVICE ? TYPE_DEVICE : TYPE_HOST;
	else if (attribute == IS_MANAGED)
		*(unsigned *)data = kind == FAKE_MANAGED;
	else
		return INVALID_VALUE;
	return 0;
}
