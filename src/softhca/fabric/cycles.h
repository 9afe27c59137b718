/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cycles.h - the CPU's time-stamp counter (x86: TSC; aarch64: CNTVCT_EL0), read without a system
 * call.
 */
#ifndef SHCA_CYCLES_H
#define SHCA_CYCLES_H

#include <stdint.h>

/* Returns a number that grows at a constant rate, the same on each CPU. */
static inline uint64_t shca_cycles(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
#error "The time-stamp counter of this CPU is not known."
#endif
}

#endif
