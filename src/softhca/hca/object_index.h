/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object_index.h - from a table index, as a completion or an event carries it, to this process's
 * object.
 */
#ifndef SHCA_OBJECT_INDEX_H
#define SHCA_OBJECT_INDEX_H

#include "objects.h"

/* 0 or -ENOMEM. Setting NULL never fails. Thread-safe. */
int shca_object_index_set(unsigned hca, enum shca_kind kind, uint32_t idx, void *object);
void *shca_object_index_get(unsigned hca, enum shca_kind kind, uint32_t idx);
/* Calls fn for each object of a kind, on every HCA. Objects may come and go meanwhile. */
void shca_object_index_each(enum shca_kind kind, void (*fn)(void *object));
/* Forgets all (in a forked child). */
void shca_object_index_reset(void);

#endif
