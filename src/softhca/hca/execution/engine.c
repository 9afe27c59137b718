/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.c - the engine thread: what it executes, and its sleep.
 */
#include "engine.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock/clock.h"
#include "fabric/epoch.h"
#include "fabric/options_parse.h"
#include "fabric/proc.h"
#include "fabric/reap.h"
#include "fabric/thread.h"
#include "flush.h"
#include "hca/memory/peer_copy.h"
#include "hca/memory/segment.h"
#include "hca/queues/cq_event.h"
#include "post.h"
#include "runqueue.h"

/* Time (ns) between two checks of the process table while peers don't answer. A choice: a check
 * reads a file in /proc for each process, and only ends waits for a dead peer sooner. */
#define LIVENESS_EACH 50000000u

enum engine_life {
	ENGINE_OFF,
	ENGINE_STARTING, /* its thread has not taken the process's alive lock yet */
	ENGINE_RUNNING,
	ENGINE_STOPPING,
};

static struct {
	pthread_mutex_t lock; /* protects the transitions of `life` */
	pthread_cond_t life_changed;
	_Atomic(enum engine_life) life;
	pthread_t thread;
} eng = {.lock = PTHREAD_MUTEX_INITIALIZER, .life_changed = PTHREAD_COND_INITIALIZER};

/* ---------------------------------------------------------------- executing */

static void run(struct shca_qp *qp)
{
	pthread_mutex_lock(&qp->sq_lock);
	shca_post_run(qp, SHCA_BY_ENGINE);
	pthread_mutex_unlock(&qp->sq_lock);
}

static bool timer_due(uint64_t *now)
{
	uint64_t next = shca_runqueue_next();

	*now = 0;
	if (next == UINT64_MAX)
		return false;
	*now = shca_now();
	return next <= *now;
}

/* Executes one thing that is due, if there is one. */
static bool work(void)
{
	struct shca_qp *qp;
	uint64_t now;
	bool due = timer_due(&now);

	if (!due && !shca_runqueue_has_ready())
		return false;
	if (due && shca_cq_event_fire(now))
		return true;
	qp = shca_runqueue_take(due ? now : 0);
	if (qp)
		run(qp);
	return qp != NULL;
}

/* ---------------------------------------------------------------- attention */

static void attend(void)
{
	uint32_t a = atomic_exchange(&shca_self.proc->attention, 0);

	if (a & SHCA_ATTENTION_RNR)
		shca_runqueue_end_rnr_waits();
	if (a & SHCA_ATTENTION_QP)
		shca_flush_failed_qps();
	if (a & SHCA_ATTENTION_MR)
		shca_segment_sweep();
}

/* ---------------------------------------------------------------- the thread */

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

static bool stopping(void)
{
	return atomic_load(&eng.life) == ENGINE_STOPPING;
}

/* Sleeps until a wake-up or the next timer. */
static void sleep_until_woken(void)
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

/* Takes the lock by which peers see that this process runs. */
static void lock_alive(void)
{
	shca_lock(&shca_self.proc->alive_lock);
	pthread_mutex_lock(&eng.lock);
	atomic_store(&eng.life, ENGINE_RUNNING);
	pthread_cond_signal(&eng.life_changed);
	pthread_mutex_unlock(&eng.lock);
}

/* Virtual time: executes what is due, in whichever thread of this process has the turn. */
static void execute_due(void)
{
	if (atomic_load(&shca_self.proc->attention))
		attend();
	while (work())
		;
	shca_runqueue_note_due();
}

/* Virtual time: sleeps until the turn is the adapters', or another process asks for a copy. */
static void await_turn(void)
{
	struct shca_proc *proc = shca_self.proc;
	_Atomic uint32_t *granted = &shca_clk->actors[shca_self.slot].granted;
	uint32_t seen = atomic_load(&proc->wake_word);

	atomic_exchange(&proc->sleeping, 1);
	if (!atomic_load(granted) && !shca_peer_copy_asked() && !stopping())
		syscall(SYS_futex, &proc->wake_word, FUTEX_WAIT, seen, NULL, NULL, 0);
	atomic_store(&proc->sleeping, 0);
	if (!atomic_exchange(granted, 0))
		return;
	/* The process was stopped, and the clock went on without it. */
	if (atomic_load(&shca_clk->actors[shca_self.slot].state) == SHCA_ACTOR_OUT)
		shca_clock_due(shca_self.slot, shca_now());
	while (shca_turn_step(shca_self.slot))
		execute_due();
}

/* Runs this process's adapters in virtual time. By itself this thread only copies for other
 * processes. */
static void serve_in_virtual_time(void)
{
	shca_clock_exclude();
	while (!stopping()) {
		if (!shca_peer_copy_serve())
			await_turn();
	}
}

static void serve(void)
{
	uint64_t spin = (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_ENGINE_SPIN);
	uint64_t last_work = shca_now(), last_look = 0;

	while (!stopping()) {
		uint64_t now;
		bool did = shca_peer_copy_serve();

		if (atomic_load_explicit(&shca_self.proc->attention, memory_order_relaxed)) {
			attend();
			did = true;
		}
		did |= work();
		if (did) {
			last_work = shca_now();
			continue;
		}
		now = shca_now();
		look_at_peers(now, &last_look);
		if (now - last_work < spin)
			sched_yield();
		else
			sleep_until_woken();
	}
}

static void *engine_main(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, SHCA_ENGINE_NAME);
	prctl(PR_SET_TIMERSLACK, 1UL);
	lock_alive();
	if (shca_clk)
		serve_in_virtual_time();
	else
		serve();
	shca_unlock(&shca_self.proc->alive_lock);
	return NULL;
}

/* Stores the CPUs of the option, which was checked when the fabric was made. Returns false if the
 * option names none. */
static bool wanted_cpus(cpu_set_t *cpus)
{
	return !shca_parse_cpus(shca_self.fabric.hdr->config.text[SHCA_O_ENGINE_CPUS], cpus) &&
	       CPU_COUNT(cpus);
}

/* Creates the thread on these CPUs (NULL: on those of the caller). Returns 0 or an errno value. */
static int create_on(const cpu_set_t *cpus)
{
	pthread_attr_t attr;
	int rc;

	shca_thread_attr(&attr);
	if (cpus)
		pthread_attr_setaffinity_np(&attr, sizeof(*cpus), cpus);
	rc = pthread_create(&eng.thread, &attr, engine_main, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

/* Creates the thread on the CPUs of the option. If this process may run on none of them, the
 * scheduler decides. Returns 0 or an errno value. */
static int create_thread(void)
{
	cpu_set_t cpus;
	int rc = wanted_cpus(&cpus) ? create_on(&cpus) : EINVAL;

	return rc == EINVAL ? create_on(NULL) : rc;
}

int shca_engine_start(void)
{
	sigset_t all, old;
	int rc = 0;

	pthread_mutex_lock(&eng.lock);
	if (atomic_load(&eng.life) == ENGINE_OFF) {
		atomic_store(&eng.life, ENGINE_STARTING);
		/* Keeps the application's signals away from this thread. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		shca_epoch_while_waiting = shca_peer_copy_serve;
		shca_clock_adapter = execute_due;
		rc = -create_thread();
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (rc)
			atomic_store(&eng.life, ENGINE_OFF);
		while (atomic_load(&eng.life) == ENGINE_STARTING)
			pthread_cond_wait(&eng.life_changed, &eng.lock);
	}
	pthread_mutex_unlock(&eng.lock);
	return rc;
}

void shca_engine_stop(void)
{
	bool runs;

	pthread_mutex_lock(&eng.lock);
	runs = atomic_load(&eng.life) == ENGINE_RUNNING;
	if (runs)
		atomic_store(&eng.life, ENGINE_STOPPING);
	pthread_mutex_unlock(&eng.lock);
	if (!runs)
		return;
	shca_proc_wake(shca_self.proc);
	pthread_join(eng.thread, NULL);
	atomic_store(&eng.life, ENGINE_OFF);
}

void shca_engine_reset(void)
{
	memset(&eng, 0, sizeof(eng));
	pthread_mutex_init(&eng.lock, NULL);
	pthread_cond_init(&eng.life_changed, NULL);
	atomic_store(&shca_self.suspicious, false);
	shca_runqueue_reset();
}
