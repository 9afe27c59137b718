/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_gpu.h - stand-ins for the libraries of a GPU, whose memory the program gpu chooses. */
#ifndef T_FAKE_GPU_H
#define T_FAKE_GPU_H

#include <stddef.h>
#include <stdint.h>

enum fake_kind { FAKE_DEVICE, FAKE_MANAGED, FAKE_PINNED, FAKE_NONE };

/* Declares an area to be the memory of this kind, in place of the one before. */
void fake_memory(enum fake_kind kind, void *addr, size_t len);
enum fake_kind fake_kind_of(uintptr_t addr);
/* libcuda */
int cuPointerGetAttribute(void *data, int attribute, unsigned long long ptr);
/* libhsa-runtime64 */
int hsa_amd_pointer_info(const void *ptr, void *data, void *(*alloc)(size_t), uint32_t *n,
			 uint64_t **agents);
int hsa_agent_get_info(uint64_t agent, int attribute, void *value);

#endif
