/* SPDX-License-Identifier: BSD-3-Clause */
/* The compiler for which cppcheck reads uthash.h and utlist.h. Without these each file would be
 * checked again for every other one. */
#define DECLTYPE(x)  __typeof(x)
#define LDECLTYPE(x) __typeof(x)
#define __GNUC__     12
