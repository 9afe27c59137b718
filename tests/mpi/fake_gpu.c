/* SPDX-License-Identifier: BSD-3-Clause */
/* The areas that the stand-ins for a GPU's libraries report as the GPU's memory. */
#include "fake_gpu.h"

static struct {
	uintptr_t from, to;
} areas[FAKE_NONE];

void fake_memory(enum fake_kind kind, void *addr, size_t len)
{
	areas[kind].from = (uintptr_t)addr;
	areas[kind].to = (uintptr_t)addr + len;
}

enum fake_kind fake_kind_of(uintptr_t addr)
{
	enum fake_kind kind = FAKE_DEVICE;

	while (kind < FAKE_NONE && (addr < areas[kind].from || addr >= areas[kind].to))
		kind++;
	return kind;
}
