/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.c - the life of the engine's thread.
 */
#include "engine.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock/clock.h"
#include "fabric/epoch.h"
#include "fabric/options_parse.h"
#include "fabric/proc.h"
#include "fabric/thread.h"
#include "hca/memory/peer_copy.h"
#include "runqueue.h"
#include "serve.h"

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

static bool stopping(void)
{
	return atomic_load(&eng.life) == ENGINE_STOPPING;
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

static void *engine_main(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, SHCA_ENGINE_NAME);
	prctl(PR_SET_TIMERSLACK, 1UL);
	lock_alive();
	if (shca_clk)
		shca_serve_virtual(stopping);
	else
		shca_serve_real(stopping);
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
		shca_clock_adapter = shca_serve_due;
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
