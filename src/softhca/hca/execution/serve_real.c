/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve_real.c - the engine with the real clock: it polls for a while, then sleeps.
 */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fabric/reap.h"
#include "hca/memory/peer_copy.h"
#include "runqueue.h"
#include "serve.h"

/* Time (ns) between two checks of the process table while peers don't answer. A choice: a check
 * reads a file in /proc for each process, and only ends waits for a dead peer sooner. */
#define LIVENESS_EACH 50000000u

/* Frees dead peers' resources. The launcher's monitor does that too, unless the monitor is gone. */
static void look_at_peers(uint64_t now, uint64_t *last)
{
	if (!atomic_load_explicit(&shca_self.suspicious, memory_order_relaxed) ||
	    now - *last < LIVENESS_EACH)
		return;
	atomic_store_explicit(&shca_self.suspicious, false, memory_order_relaxed);
	*last = now;
	shca_reap_all(&shca_self.fabric);
}

/* Sleeps until a wake-up or the next timer. */
static void sleep_until_woken(bool (*stopping)(void))
{
	struct shca_proc *proc = shca_self.proc;
	uint32_t seen = atomic_load(&proc->wake_word);
	uint64_t now = shca_now(), next;

	atomic_exchange(&proc->sleeping, 1);
	next = shca_runqueue_next();
	if (!shca_runqueue_has_ready() && !atomic_load(&proc->attention) &&
	    !shca_peer_copy_asked() && !stopping() && next > now) {
		uint64_t ns = next - now;
		struct timespec ts = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

		syscall(SYS_futex, &proc->wake_word, FUTEX_WAIT, seen,
			next == UINT64_MAX ? NULL : &ts, NULL, 0);
	}
	atomic_store(&proc->sleeping, 0);
}

void shca_serve_real(bool (*stopping)(void))
{
	uint64_t spin = (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_ENGINE_SPIN);
	uint64_t last_work = shca_now(), last_look = 0;

	while (!stopping()) {
		uint64_t now;
		bool did = shca_peer_copy_serve();

		did |= shca_serve_attention();
		did |= shca_serve_work();
		if (did) {
			last_work = shca_now();
			continue;
		}
		now = shca_now();
		look_at_peers(now, &last_look);
		if (now - last_work < spin)
			sched_yield();
		else
			sleep_until_woken(stopping);
	}
}
