/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library.h - where libsofthca.so is, and how the processes of a fabric come to load it.
 */
#ifndef SHCA_LIBRARY_H
#define SHCA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* The absolute path of libsofthca.so: $SOFTHCA_LIBRARY, else beside the launcher in the build tree,
 * else installed. 0, or -ENOENT with a sentence in err. */
int shca_library_find(char *path, size_t len, char *err, size_t errlen);
/* Puts it first in LD_PRELOAD, once; what else is there stays. `clock`: with libsofthca-clock.so,
 * which lies beside it. 0, -ENOMEM, or -ENOENT: that one is missing. */
int shca_library_preload(const char *path, bool clock);

#endif
