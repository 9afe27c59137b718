/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_tsc.c - the instruction rdtsc in virtual time. The kernel makes it a SIGSEGV in the threads
 * that asked for that (PR_SET_TSC); the handler puts the virtual time into the registers. A handler
 * that the program has for SIGSEGV is called for all others.
 */
#define _GNU_SOURCE 1
#include "next_signal.h"
#include "program.h"

#ifdef __x86_64__
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <ucontext.h>

#define VDSO_LEN 8192u /* of the mapping: two pages */

static struct sigaction program_action; /* that the program has set */
static bool trapping;                   /* our handler is in place */

/* Returns the length of the instruction there if it reads the TSC, or 0. */
static unsigned tsc_instruction_length(const unsigned char *at)
{
	if (at[0] == 0x0f && at[1] == 0x31)
		return 2;
	return at[0] == 0x0f && at[1] == 0x01 && at[2] == 0xf9 ? 3 : 0; /* rdtscp */
}

static uint64_t real_tsc(unsigned *cpu)
{
	uint64_t tsc;

	prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
	tsc = __builtin_ia32_rdtscp(cpu);
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
	return tsc;
}

static bool is_in_vdso(uintptr_t at)
{
	uintptr_t vdso = getauxval(AT_SYSINFO_EHDR);

	return vdso && at >= vdso && at < vdso + VDSO_LEN;
}

static void call_program_handler(int nr, siginfo_t *info, void *context)
{
	if (program_action.sa_handler == SIG_DFL || program_action.sa_handler == SIG_IGN) {
		/* The instruction is executed again, and ends the process. */
		shca_kernel_sigaction(SIGSEGV, &program_action, NULL);
		trapping = false;
	} else if (program_action.sa_flags & SA_SIGINFO) {
		program_action.sa_sigaction(nr, info, context);
	} else {
		program_action.sa_handler(nr);
	}
}

static void on_segv(int nr, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t at = (uintptr_t)regs[REG_RIP];
	int error = errno;
	unsigned len = 0, cpu = 0;
	uint64_t tsc;

	/* A wrong address has another code, and there need not be an instruction. */
	if (info->si_code == SI_KERNEL)
		len = tsc_instruction_length((const unsigned char *)at);
	if (!len) {
		call_program_handler(nr, info, context);
		return;
	}
	if (shca_program_join() && !is_in_vdso(at))
		tsc = shca_program_tsc();
	else
		tsc = real_tsc(&cpu);
	regs[REG_RAX] = (greg_t)(tsc & UINT32_MAX);
	regs[REG_RDX] = (greg_t)(tsc >> 32);
	if (len == 3)
		regs[REG_RCX] = (greg_t)cpu;
	regs[REG_RIP] += len;
	errno = error;
}

/* Makes the calling thread, which joins the clock, trap when it reads the TSC. */
static void trap(void)
{
	struct sigaction ours = {.sa_sigaction = on_segv,
				 .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
	sigset_t segv;

	if (!trapping) {
		trapping = true;
		shca_kernel_sigaction(SIGSEGV, &ours, &program_action);
	}
	/* Threads of libraries block all signals. A fault whose signal is blocked ends the process.
	 */
	sigemptyset(&segv);
	sigaddset(&segv, SIGSEGV);
	pthread_sigmask(SIG_UNBLOCK, &segv, NULL);
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
}

/* Lets the calling thread read the TSC: a new thread, or program (next_exec.c), inherits the trap.
 */
static void untrap(void)
{
	prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
}

/* Sets and returns the program's action for SIGSEGV. Returns false if our handler isn't in place.
 */
static bool set_segv(const struct sigaction *act, struct sigaction *old)
{
	struct sigaction was = program_action;

	if (!trapping)
		return false;
	if (act)
		program_action = *act;
	if (old)
		*old = was;
	return true;
}

__attribute__((constructor)) static void prepare(void)
{
	shca_signal_set_segv = set_segv;
	untrap();
	pthread_atfork(NULL, NULL, untrap);
	shca_program_set_traps(trap, untrap);
}
#endif
