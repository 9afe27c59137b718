/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process.c - this process on its fabric: attached when it first asks for devices, and in the
 * process table from the first device that it opens; in virtual time a rank is there earlier. A
 * forked child is not in the table.
 */
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "clock/clock.h"
#include "cm/life.h"
#include "fabric/cancel.h"
#include "fabric/capture.h"
#include "fabric/proc.h"
#include "fabric/say.h"
#include "fabric/trace.h"
#include "hca/context_objects.h"
#include "hca/execution/engine.h"
#include "hca/memory/peer_copy.h"
#include "hca/objects/reset.h"
#include "hca/queues/cq_event.h"
#include "hca/timing.h"

/* Protects shca_self while it changes, and the next two variables. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned contexts;
static bool complained;

static void complain(const char *sentence)
{
	if (!complained)
		shca_say("%s", sentence);
	complained = true;
}

static void fork_prepare(void)
{
	shca_clock_disturb();
	pthread_mutex_lock(&lock);
	shca_context_objects_fork_prepare();
}

static void fork_parent(void)
{
	shca_context_objects_fork_parent();
	pthread_mutex_unlock(&lock);
}

/*
 * The mapping stays, but all that is the parent's is forgotten: its slot, its objects, its engine
 * (and by fabric/ its arena, channels and epochs). The child opens devices of its own.
 */
static void fork_child(void)
{
	/* First: the locks that are released below are none of the parent's thread. */
	shca_clock_reset();
	shca_timing_choose();
	shca_context_objects_fork_child(shca_leftover_inherit);
	shca_self.slot = SHCA_NO_PROC;
	shca_self.proc = NULL;
	contexts = 0;
	shca_reset();
	pthread_mutex_unlock(&lock);
}

/* A launcher says by one of these which process of its node this is. */
static const char *const rank_names[] = {
	"OMPI_COMM_WORLD_LOCAL_RANK",
	"PMIX_LOCAL_RANK",
	"PMI_LOCAL_RANK",
	"MPI_LOCALRANKID",
	"SLURM_LOCALID",
};

static bool env_number(const char *name, unsigned long *n)
{
	const char *s = getenv(name);
	char *end;

	if (!s || *s < '0' || *s > '9')
		return false;
	*n = strtoul(s, &end, 10);
	return *end == '\0';
}

static int refuse_node(unsigned nodes)
{
	char text[160];

	snprintf(text, sizeof(text),
		 SHCA_ENV_NODE " must be a node of this fabric, 0 to %u, but is \"%.40s\".",
		 nodes - 1, getenv(SHCA_ENV_NODE));
	complain(text);
	return -EINVAL;
}

/* Stores the virtual node of this process. Returns 0 or -EINVAL. */
static int choose_node(unsigned nodes, unsigned *node)
{
	unsigned long n = 0;

	if (getenv(SHCA_ENV_NODE)) {
		if (!env_number(SHCA_ENV_NODE, &n) || n >= nodes)
			return refuse_node(nodes);
	} else {
		for (unsigned i = 0; i < sizeof(rank_names) / sizeof(*rank_names); i++)
			if (env_number(rank_names[i], &n))
				break;
	}
	*node = (unsigned)(n % nodes);
	return 0;
}

static int attach(const char *dir)
{
	static bool fork_handled;
	char err[512];
	int ret;

	ret = shca_fabric_attach(dir, &shca_self.fabric, err, sizeof(err));
	if (ret) {
		complain(err);
		return ret;
	}
	ret = choose_node(shca_self.fabric.hdr->nodes, &shca_self.node);
	if (ret)
		goto detach;
	shca_life_watch();
	ret = shca_devices_make();
	if (ret) {
		complain("The fabric's directory has too long a name: start it again with `softhca "
			 "run`.");
		goto detach;
	}
	if (!fork_handled) {
		ret = -pthread_atfork(fork_prepare, fork_parent, fork_child);
		if (ret)
			goto detach;
		fork_handled = true;
	}
	return 0;
detach:
	shca_fabric_detach(&shca_self.fabric);
	return ret;
}

int shca_process_attach(void)
{
	static bool attached;
	const char *dir;
	int ret = 1, cancel = shca_cancel_hold();

	pthread_mutex_lock(&lock);
	if (attached)
		goto out;
	dir = getenv(SHCA_ENV_FABRIC);
	if (!dir || !*dir) {
		complain("There is no fabric here, so there are no devices: start the program with "
			 "`softhca run`.");
		ret = 0;
		goto out;
	}
	ret = attach(dir);
	if (ret == 0) {
		attached = true;
		ret = 1;
	}
out:
	pthread_mutex_unlock(&lock);
	shca_cancel_restore(cancel);
	return ret;
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	int n = 0, ret = shca_process_attach();

	if (num_devices)
		*num_devices = 0;
	if (ret < 0) {
		errno = -ret;
		return NULL;
	}
	/* Without a fabric there are no devices. */
	list = shca_devices_list(&n);
	if (!list)
		errno = ENOMEM;
	else if (num_devices)
		*num_devices = n;
	return list;
}

/* May be called before anything else. Without a fabric there are no devices to find. */
const char *ibv_get_sysfs_path(void)
{
	return shca_process_attach() > 0 ? shca_devices_sysfs() : "/sys";
}

/* Takes a slot. Needs the lock. */
static int take_slot(void)
{
	int slot = shca_proc_attach(&shca_self.fabric);

	if (slot == -EAGAIN)
		complain("The fabric has no room for another process: end some, or start a second "
			 "fabric.");
	if (slot < 0)
		return slot;
	/* The bounce buffers were in the arena of a slot that this process has given back. */
	shca_peer_copy_reset();
	shca_self.slot = (unsigned)slot;
	shca_self.proc = &shca_self.fabric.hdr->procs[slot];
	shca_self.tag = SHCA_TAG(slot, atomic_load(&shca_self.proc->state));
	shca_self.proc->node = shca_self.node;
	shca_self.number = shca_proc_rank() >= 0 ? (unsigned)shca_proc_rank() : shca_self.slot;
	shca_trace_start(&shca_self.fabric, shca_self.slot);
	shca_clock_attach(&shca_self.fabric, shca_self.slot, shca_self.node);
	shca_timing_choose();
	shca_capture_start(&shca_self.fabric, shca_self.slot);
	/* Yama (ptrace_scope 1) lets only a process's parents reach its memory; peers need it, and
	 * the fabric's directory already keeps other users out. EINVAL where there is no Yama. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	return 0;
}

/* Gives the slot back, and with it all that this process has on the fabric. Needs the lock. */
static void give_slot(void)
{
	unsigned slot = shca_self.slot;

	/* The process has no QPs any more: only events that are due are left to raise. */
	if (shca_cq_event_next() == UINT64_MAX)
		atomic_store(&shca_self.proc->owes, 0);
	shca_clock_detach();
	shca_timing_choose();
	shca_trace_stop();
	shca_capture_stop();
	shca_self.slot = SHCA_NO_PROC;
	shca_self.proc = NULL;
	shca_proc_detach(&shca_self.fabric, slot);
}

/* Takes a slot, and starts the engine. Needs the lock. */
static int begin(void)
{
	int ret;

	if (shca_self.slot != SHCA_NO_PROC)
		return 0;
	ret = take_slot();
	if (ret)
		return ret;
	ret = shca_engine_start();
	if (ret)
		give_slot();
	return ret;
}

int shca_process_enter(void)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = begin();
	if (!ret) {
		contexts++;
		shca_clock_has_device();
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

/* Enters virtual time without a device. A failure is reported again when one is opened. */
static void enter_time(void)
{
	int cancel;

	if (shca_process_attach() <= 0 || !shca_fabric_clock(&shca_self.fabric))
		return;
	cancel = shca_cancel_hold();
	pthread_mutex_lock(&lock);
	begin();
	pthread_mutex_unlock(&lock);
	shca_cancel_restore(cancel);
}

__attribute__((constructor)) static void at_start(void)
{
	shca_clock_take_slot = enter_time;
}

void shca_process_leave(void)
{
	pthread_mutex_lock(&lock);
	contexts--;
	pthread_mutex_unlock(&lock);
}

/* Gives the slot back if the program has closed all contexts; if it opens a device again after
 * this, it takes another slot. As long as anything is open, handlers and destructors that come
 * after ours may still use it, so the slot is left to the fabric's reaper. */
__attribute__((destructor)) static void at_exit(void)
{
	/* A thread that is still opening or closing is a user too. */
	if (pthread_mutex_trylock(&lock))
		return;
	/* The thread that ends the process needs no turn for what it still does. */
	shca_clock_out();
	shca_clock_exclude();
	if (contexts == 0 && shca_self.slot != SHCA_NO_PROC) {
		shca_engine_stop();
		give_slot();
	}
	pthread_mutex_unlock(&lock);
}
