/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object_index.h - from the table index in a completion or an event to this process's object.
 */
#ifndef SHCA_OBJECT_INDEX_H
#define SHCA_OBJECT_INDEX_H

#include "fabric/layout.h"

/* Stores the object of an index, or NULL, which never fails. Returns 0 or -ENOMEM. Thread-safe. */
int shca_object_index_set(unsigned hca, enum shca_kind kind, uint32_t idx, void *object);
/* Returns the object of an index, or NULL. */
void *shca_object_index_get(unsigned hca, enum shca_kind kind, uint32_t idx);
/* Calls fn(object, arg) for each object of a kind, on every HCA. Objects may come and go meanwhile.
 */
void shca_object_index_each(enum shca_kind kind, void (*fn)(void *object, void *arg), void *arg);
/* Forgets all objects, in a forked child. */
void shca_object_index_reset(void);

#endif
