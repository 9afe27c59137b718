/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoch.c - executor slots of threads, and waiting for executors of all processes to leave.
 */
#include "epoch.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cancel.h"
#include "proc.h"

/*
 * How a thread waits for an executor: SPINS looks, then as many with a yield between, then with a
 * nap (ns). Choices: an executor that runs leaves its epoch after a message or a chunk of one; a
 * nap gives the CPU away for longer than a yield, and makes the wait up to that much longer.
 */
#define SPINS  200
#define NAP_NS 50000
/* Time (ns) between two questions to the kernel whether the executor's process still runs: each is
 * a read of a file in /proc. */
#define LOOK_AGAIN_NS 1000000ul

struct shca_exec *shca_epoch_shared;

static struct shca_proc *_Atomic bound;
static _Atomic uint64_t
	binding; /* changes of `bound`, so that no thread uses a slot that it took before */
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* only for its destructor */

/* The library is loaded when the program starts, so its thread-local data can be found without a
 * call. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	struct shca_exec *exec;
	uint64_t binding;
} self;

static void thread_ends(void *arg)
{
	(void)arg;
	if (self.exec && self.binding == atomic_load(&binding) && self.exec != shca_epoch_shared) {
		/* The thread ended inside an epoch. Close it: otherwise waiters would wait as
		 * long as the process lives, once another thread has the executor. */
		if (atomic_load_explicit(&self.exec->seq, memory_order_relaxed) & 1)
			shca_epoch_exit(self.exec);
		atomic_store_explicit(&self.exec->tid, 0, memory_order_release);
	}
	self.exec = NULL;
}

static void make_key(void)
{
	pthread_key_create(&key, thread_ends);
}

static struct shca_exec *take_slot(void)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	uint64_t now = atomic_load(&binding);
	struct shca_proc *proc = atomic_load(&bound);
	unsigned i;

	if (!proc)
		return NULL;
	pthread_once(&key_once, make_key);
	for (i = 0; i < SHCA_MAX_EXEC - 1; i++) {
		uint32_t none = 0;

		if (atomic_load_explicit(&proc->exec[i].tid, memory_order_relaxed) == 0 &&
		    atomic_compare_exchange_strong(&proc->exec[i].tid, &none, tid))
			break;
	}
	self.exec = &proc->exec[i];
	self.binding = now;
	pthread_setspecific(key, &self);
	return self.exec;
}

struct shca_exec *shca_epoch_self(void)
{
	if (__builtin_expect(self.exec && self.binding == atomic_load_explicit(
								  &binding, memory_order_acquire),
			     1))
		return self.exec;
	return take_slot();
}

void shca_epoch_lock_shared(void)
{
	pthread_mutex_lock(&shared_lock);
	atomic_store_explicit(&shca_epoch_shared->tid, (uint32_t)syscall(SYS_gettid),
			      memory_order_relaxed);
}

void shca_epoch_unlock_shared(void)
{
	pthread_mutex_unlock(&shared_lock);
}

void shca_epoch_bind(struct shca_proc *proc)
{
	if (proc)
		shca_epoch_shared = &proc->exec[SHCA_MAX_EXEC - 1];
	atomic_store(&bound, proc);
	atomic_fetch_add(&binding, 1);
}

bool (*shca_epoch_while_waiting)(void);

void shca_epoch_reset(void)
{
	shca_epoch_while_waiting = NULL;
	if (self.exec)
		pthread_setspecific(key, NULL);
	self.exec = NULL;
	shca_epoch_bind(NULL);
	/* Another thread of the parent may have held the lock. */
	pthread_mutex_init(&shared_lock, NULL);
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Returns true if the thread that was inside is gone: it ended, or its process ended or replaced
 * its program. */
static bool executor_gone(const struct shca_fabric *fabric, unsigned proc,
			  const struct shca_exec *exec)
{
	pid_t pid = atomic_load(&fabric->hdr->procs[proc].pid);
	uint32_t tid = atomic_load(&exec->tid);

	if (!shca_proc_running(fabric, proc))
		return true;
	return tid && syscall(SYS_tgkill, pid, (pid_t)tid, 0) && errno == ESRCH;
}

static bool may_hold(unsigned proc, const struct shca_exec *exec, unsigned owner)
{
	uint32_t holds = atomic_load_explicit(&exec->holds, memory_order_acquire);

	return owner == SHCA_HOLDS_ANY || proc == owner || holds == SHCA_HOLDS_ANY ||
	       holds == owner;
}

/* Pauses before look `n`, longer as `n` grows, and serves copies for other processes meanwhile. */
static void pause_a_while(unsigned n)
{
	const struct timespec nap = {0, NAP_NS};

	if (n < SPINS)
		relax();
	else if (shca_epoch_while_waiting && shca_epoch_while_waiting())
		return;
	else if (n < 2 * SPINS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

static bool wait_out(const struct shca_fabric *fabric, unsigned proc, const struct shca_exec *exec,
		     unsigned owner, uint64_t deadline)
{
	uint64_t seen = atomic_load(&exec->seq), looked = 0;

	if (!(seen & 1))
		return true;
	for (unsigned n = 0; atomic_load_explicit(&exec->seq, memory_order_acquire) == seen; n++) {
		uint64_t now;

		/* The executor may narrow its epoch, once it knows whose objects it needs. */
		if (!may_hold(proc, exec, owner))
			return true;
		pause_a_while(n);
		if (n < 2 * SPINS)
			continue;
		now = shca_real_now();
		/* On busy CPUs the first look may come after the deadline. */
		if (now - looked >= LOOK_AGAIN_NS) {
			if (executor_gone(fabric, proc, exec))
				return true;
			looked = now;
		}
		if (now >= deadline)
			return false;
	}
	return true;
}

bool shca_epoch_sync_for(struct shca_fabric *fabric, unsigned owner, uint64_t ns)
{
	uint64_t now = shca_real_now(), deadline = ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
	int cancel = shca_cancel_hold();
	bool out = true;

	for (unsigned p = 0; out && p < SHCA_MAX_PROCS; p++) {
		struct shca_proc *proc = &fabric->hdr->procs[p];

		if ((atomic_load(&proc->state) & 0xff) == SHCA_PROC_FREE)
			continue;
		for (unsigned i = 0; out && i < SHCA_MAX_EXEC; i++)
			out = wait_out(fabric, p, &proc->exec[i], owner, deadline);
	}
	shca_cancel_restore(cancel);
	return out;
}

void shca_epoch_sync(struct shca_fabric *fabric)
{
	const struct shca_proc *me = atomic_load(&bound);

	shca_epoch_sync_for(fabric, me ? (unsigned)(me - fabric->hdr->procs) : SHCA_HOLDS_ANY,
			    UINT64_MAX);
}
