/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for libhsa-runtime64.so.1, with the functions that pml/tupleq calls. The real library
 * reports managed memory as the host's.
 */
#include "fake_gpu.h"

enum { UNKNOWN = 0, HSA = 1, LOCKED = 2, INFO_DEVICE = 17, ERROR = 0x1000 };
enum { CPU_AGENT = 7, GPU_AGENT = 8 };

struct info {
	uint32_t size;
	int type;
	void *agent_base, *host_base;
	size_t bytes;
	void *user_data;
	uint64_t owner;
};

int hsa_amd_pointer_info(const void *ptr, void *data, void *(*alloc)(size_t), uint32_t *n,
			 uint64_t **agents)
{
	static const struct {
		int type;
		uint64_t owner;
	} of[] = {
		[FAKE_DEVICE] = {HSA, GPU_AGENT},
		[FAKE_MANAGED] = {HSA, CPU_AGENT},
		[FAKE_PINNED] = {LOCKED, CPU_AGENT},
		[FAKE_NONE] = {UNKNOWN, 0},
	};
	enum fake_kind kind = fake_kind_of((uintptr_t)ptr);
	struct info *info = data;

	(void)alloc, (void)n, (void)agents;
	if (info->size < sizeof(*info))
		return ERROR;
	info->type = of[kind].type;
	info->owner = of[kind].owner;
	return 0;
}

int hsa_agent_get_info(uint64_t agent, int attribute, void *value)
{
	if (attribute != INFO_DEVICE || (agent != CPU_AGENT && agent != GPU_AGENT))
		return ERROR;
	*(int *)value = agent == GPU_AGENT;
	return 0;
}
