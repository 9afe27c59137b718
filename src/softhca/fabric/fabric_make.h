/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric_make.h - what making and mapping a fabric share.
 */
#ifndef SHCA_FABRIC_MAKE_H
#define SHCA_FABRIC_MAKE_H

#include "fabric.h"

/* Returns the size of a fabric's header and tables, behind which the arenas are. */
uint64_t shca_fabric_size(uint32_t nhcas, const struct shca_config *config);
/* Stores a sentence in `err`. Returns `rc`. */
int shca_fabric_fail(int rc, char *err, size_t errlen, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
