/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next.h - for functions that stand in front of the C library's of the same name.
 *
 * A file lists those that it has as FUNCTIONS(FN), with FN(return type, symbol, parameters) for
 * each, and expands NEXT_FUNCTIONS(FUNCTIONS). Each becomes shca_symbol, with the public name, and
 * next_symbol(), the one behind it. The asm label keeps the system's attributes off the
 * definitions.
 */
#ifndef SHCA_NEXT_H
#define SHCA_NEXT_H

#include <dlfcn.h>

/* Returns the function behind ours of that name, or NULL. glibc has two generations of
 * pthread_cond_*, and dlsym() may find the elder, so the younger one's version is looked up first.
 */
static inline void *shca_next(const char *symbol)
{
	void *function = dlvsym(RTLD_NEXT, symbol, "GLIBC_2.3.2");

	return function ? function : dlsym(RTLD_NEXT, symbol);
}

#define NEXT_DECLARE(ret, symbol, parameters)                                              \
	typedef ret symbol##_fn parameters;                                                \
	__attribute__((visibility("default"))) symbol##_fn shca_##symbol __asm__(#symbol); \
	static symbol##_fn *next_##symbol;
#define NEXT_RESOLVE(ret, symbol, parameters) *(void **)&next_##symbol = shca_next(#symbol);

/* resolve() finds those behind. Constructors of other libraries may come before it, so NEXT() calls
 * it, too. */
#define NEXT_FUNCTIONS(FUNCTIONS)                              \
	FUNCTIONS(NEXT_DECLARE)                                \
	__attribute__((constructor)) static void resolve(void) \
	{                                                      \
		FUNCTIONS(NEXT_RESOLVE)                        \
	}
#define NEXT(symbol) (next_##symbol ? next_##symbol : (resolve(), next_##symbol))

#endif
