/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library.h - finding libsofthca.so, and having the processes of a fabric load it.
 */
#ifndef SHCA_LIBRARY_H
#define SHCA_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Stores the absolute path of libsofthca.so: $SOFTHCA_LIBRARY, else beside the launcher in the
 * build tree, else installed. Returns 0, or -ENOENT with a sentence in err. */
int shca_library_find(char *path, size_t len, char *err, size_t errlen);
/* Puts the library first in LD_PRELOAD, once; other entries stay. With `clock`, adds
 * libsofthca-clock.so, which lies beside it. Returns 0, -ENOMEM, or -ENOENT if the latter is
 * missing. */
int shca_library_preload(const char *path, bool clock);

#endif
