/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * charge.c - the CPU time of a thread's program. The thread's own CPU clock is exact to half a
 * microsecond, and takes as long to read. So a stretch between two calls is timed by the CPU's
 * counter, which is believed if the thread was not switched out meanwhile: the kernel clears
 * rseq_cs when it does that. Otherwise the CPU clock is read.
 */
#define _GNU_SOURCE 1
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAVE_RSEQ 1
#endif

#include "clock.h"
#include "fabric/cycles.h"

/* Longest stretch (ns) that is timed by the TSC: interrupts in a longer one would count. */
#define TSC_MAX_NS 100000u

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	uint64_t began, ended; /* of the stretch, in cycles */
	uint64_t cpu_base;     /* CPU clock at some earlier point; 0: not known */
	uint64_t accounted;    /* ns of CPU time since then: charged, or inside of calls */
} self;

static bool without_tsc;

void shca_charge_without_tsc(void)
{
	without_tsc = true;
}

/* Returns the counter of the CPU, or ns by the kernel's clock; not by the vDSO, which reads the
 * TSC. */
static uint64_t ticks(void)
{
	struct timespec now;

	if (!without_tsc)
		return shca_cycles();
	syscall(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t ns_of(uint64_t cycles)
{
	if (without_tsc)
		return cycles;
	return (uint64_t)((unsigned __int128)cycles * 1000000000u / shca_clk->tsc_per_s);
}

static uint64_t cpu_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef HAVE_RSEQ
/* A critical section of one byte that nobody executes: its only use is that the kernel forgets it.
 * The kernel wants to find the signature in front of the address where it would go on. */
extern const char shca_charge_section[], shca_charge_abort[];
#define STRING_(x) #x
#define STRING(x)  STRING_(x)
__asm__(".pushsection .text.shca_charge,\"ax\"\n"
	".hidden shca_charge_section\n"
	"shca_charge_section: .byte 0\n"
	".balign 4\n"
	".long " STRING(RSEQ_SIG) "\n"
				  ".hidden shca_charge_abort\n"
				  "shca_charge_abort: .byte 0\n"
				  ".popsection");
static struct rseq_cs marker __attribute__((aligned(32)));

static volatile uint64_t *marker_field(void)
{
	struct rseq *area =
		(struct rseq *)(void *)((char *)__builtin_thread_pointer() + __rseq_offset);

	return __rseq_size ? (volatile uint64_t *)&area->rseq_cs : NULL;
}

static void set_marker(void)
{
	volatile uint64_t *field = marker_field();

	if (!field)
		return;
	if (__builtin_expect(!marker.start_ip, 0)) {
		marker.post_commit_offset = 1;
		marker.abort_ip = (uintptr_t)shca_charge_abort;
		marker.start_ip = (uintptr_t)shca_charge_section;
	}
	*field = (uintptr_t)&marker;
}

/* Takes the marker away. Returns true if the thread has been on its CPU all the time since
 * set_marker(). */
static bool end_marker(void)
{
	volatile uint64_t *field = marker_field();

	if (!field || *field != (uintptr_t)&marker)
		return false;
	*field = 0;
	return true;
}
#else
static void set_marker(void)
{
}
static bool end_marker(void)
{
	return false;
}
#endif

uint64_t shca_charge_end(void)
{
	bool exact = end_marker();
	uint64_t cpu, used, elapsed;

	self.ended = ticks();
	elapsed = ns_of(self.ended - self.began);
	if (exact && elapsed < TSC_MAX_NS) {
		self.accounted += elapsed;
		return elapsed;
	}
	cpu = cpu_clock();
	used = cpu - self.cpu_base > self.accounted ? cpu - self.cpu_base - self.accounted : 0;
	self.cpu_base = cpu;
	self.accounted = 0;
	return used < elapsed ? used : elapsed;
}

void shca_charge_begin(void)
{
	if (self.cpu_base) {
		self.accounted += ns_of(ticks() - self.ended);
	} else {
		self.cpu_base = cpu_clock();
		self.accounted = 0;
	}
	set_marker();
	self.began = ticks();
}

void shca_charge_stale(void)
{
	self.cpu_base = 0;
}
