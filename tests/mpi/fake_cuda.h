/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef T_FAKE_CUDA_H
#define T_FAKE_CUDA_H

#include <stddef.h>

enum fake_kind { FAKE_DEVICE, FAKE_MANAGED, FAKE_PINNED, FAKE_KINDS };

/* This memory is of the kind. */
void fake_memory(enum fake_kind kind, void *addr, size_t len);
int cuPointerGetAttribute(void *data, int attribute, unsigned long long ptr);

#endif
