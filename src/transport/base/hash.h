/* SPDX-License-Identifier: BSD-3-Clause */
/* uthash and utlist. */
#ifndef TQ_BASE_HASH_H
#define TQ_BASE_HASH_H

#include <stdio.h>
#include <stdlib.h>

/* uthash would end the process with exit(), and with it run the handlers of MPI and of the user. */
#define uthash_fatal(text)                                                       \
	do {                                                                     \
		fputs("TupleQ: there is no memory for a hash table.\n", stderr); \
		abort();                                                         \
	} while (0)
/* Several functions of uthash spread keys that are consecutive, and those that differ only in their
 * high bits. This one takes the fewest instructions of them. */
#define HASH_FUNCTION(key, len, value) HASH_SFH(key, len, value)
#include <uthash.h>
#include <utlist.h>

#endif
