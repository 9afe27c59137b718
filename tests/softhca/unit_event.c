/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_event.c - event channels.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "fabric/arena.h"
#include "fabric/event.h"
#include "fabric/proc.h"
#include "fabric/table.h"
#include "fabric/reap.h"

static uint64_t lost(void)
{
	return atomic_load(&u_hca->counters[SHCA_C_EVENTS_LOST]);
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void send_some(unsigned slot, void *arg)
{
	struct shca_event ev = {SHCA_EVENT_COMP, slot, 42};

	shca_event_send(&u_fab, u_hca, (unsigned)u_slot, *(uint32_t *)arg, &ev);
}

static void events_cross_processes(void **state)
{
	struct shca_event ev = {IBV_EVENT_PORT_ACTIVE, 1, 7}, got;
	uint32_t id, other;
	uint64_t sent = 0, n;
	struct u_child c;
	int fd, fd2;

	(void)state;
	id = (uint32_t)shca_event_create(&u_fab, (unsigned)u_slot, &fd);
	other = (uint32_t)shca_event_create(&u_fab, (unsigned)u_slot, &fd2);
	t_holds(other > id);
	t_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	t_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	t_holds(!readable(fd));
	shca_event_send(&u_fab, u_hca, (unsigned)u_slot, id, &ev);
	t_holds(readable(fd));
	t_holds(!readable(fd2));
	t_eq(read(fd, &got, sizeof(got)), sizeof(got));
	t_mem_eq(&got, &ev, sizeof(ev));

	/* The child inherits the open writing end, and forgets it. */
	c = u_fork(send_some, &id);
	t_eq(read(fd, &got, sizeof(got)), sizeof(got));
	t_eq(got.number, 42);
	t_eq(got.idx, c.slot);
	u_kill(c);

	/* The pipe is full: the sender goes on, and each lost event is counted. */
	while (lost() == 0 && sent < 1 << 20) {
		shca_event_send(&u_fab, u_hca, (unsigned)u_slot, id, &ev);
		sent++;
	}
	t_eq(lost(), 1);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (n = 0; read(fd, &got, sizeof(got)) == sizeof(got); n++)
		t_mem_eq(&got, &ev, sizeof(ev));
	t_eq(n, sent - 1);
	shca_event_destroy(&u_fab, (unsigned)u_slot, id, fd);
	shca_event_destroy(&u_fab, (unsigned)u_slot, other, fd2);
	shca_event_reset();
	shca_event_send(&u_fab, u_hca, (unsigned)u_slot, id, &ev); /* the channel is gone */
	t_eq(lost(), 2);
	shca_event_send(&u_fab, u_hca, SHCA_NO_PROC, id, &ev);
	t_eq(lost(), 3);
}

static void many_channels(void **state)
{
	enum { N = 300 };
	static uint32_t id[N];
	static int fd[N];
	struct shca_event ev = {SHCA_EVENT_COMP, 0, 0}, got;
	unsigned i, round;

	(void)state;
	for (i = 0; i < N; i++)
		id[i] = (uint32_t)shca_event_create(&u_fab, (unsigned)u_slot, &fd[i]);
	for (round = 0; round < 2; round++)
		for (i = 0; i < N; i++) {
			ev.idx = i;
			shca_event_send(&u_fab, u_hca, (unsigned)u_slot, id[i], &ev);
			t_eq(read(fd[i], &got, sizeof(got)), sizeof(got));
			t_eq(got.idx, i);
		}
	for (i = 0; i < N; i++)
		shca_event_destroy(&u_fab, (unsigned)u_slot, id[i], fd[i]);
	shca_event_reset();
	t_eq(lost(), 0);
}

/* Sends `n` records about many objects, of which every fourth is about object 7. */
static void fill(uint32_t id, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct shca_event ev = {SHCA_EVENT_COMP, 0, i % 4 ? 100 + i : 7};

		shca_event_send(&u_fab, u_hca, (unsigned)u_slot, id, &ev);
	}
}

/* Checks a FIFO that is full, or nearly so: then its last page has less room than a page that was
 * read in part. */
static void forgetting_loses_no_others(void **state)
{
	unsigned slot = (unsigned)u_slot;
	struct shca_event got;
	uint32_t id;
	int fd;

	(void)state;
	for (unsigned room = 0; room < 128; room += 56) {
		unsigned n;

		id = (uint32_t)shca_event_create(&u_fab, slot, &fd);
		n = (unsigned)fcntl(fd, F_SETPIPE_SZ, 8192) / (unsigned)sizeof(got) - room;
		fill(id, n);
		t_eq(lost(), 0);
		shca_event_forget(&u_fab, u_hca, slot, id, 1, 7);
		t_eq(lost(), 0);
		shca_event_forget(&u_fab, u_hca, slot, id, 0, 7);
		for (unsigned i = 0; i < n; i++) {
			if (i % 4 == 0)
				continue;
			t_eq(read(fd, &got, sizeof(got)), sizeof(got));
			t_eq(got.number, 100 + i);
		}
		t_holds(!readable(fd));
		shca_event_destroy(&u_fab, slot, id, fd);
	}
}

/* Checks that a channel isn't known by the number of its descriptor alone, which another file may
 * get, and that a forked child has no channels. */
static void channels_are_known(void **state)
{
	uint32_t id;
	int fd, ends[2];

	(void)state;
	id = (uint32_t)shca_event_create(&u_fab, (unsigned)u_slot, &fd);
	t_holds(shca_event_is_channel(fd));
	t_ok(pipe(ends));
	t_holds(!shca_event_is_channel(ends[0]));
	shca_event_reset();
	t_holds(!shca_event_is_channel(fd));
	shca_event_destroy(&u_fab, (unsigned)u_slot, id, fd);
	id = (uint32_t)shca_event_create(&u_fab, (unsigned)u_slot, &fd);
	t_holds(shca_event_is_channel(fd));
	t_eq(dup2(ends[0], fd), fd);
	t_holds(!shca_event_is_channel(fd));
	shca_event_destroy(&u_fab, (unsigned)u_slot, id, fd);
	close(ends[0]);
	close(ends[1]);
}

static void just_live(unsigned slot, void *arg)
{
	(void)slot;
	(void)arg;
}

/* Makes a CQ of this process with `holds` completions. The positions in its ring start at 7. */
static struct shca_cq_entry *armed_cq(uint32_t channel, uint64_t arm, unsigned holds)
{
	struct shca_cq_entry *cq = u_make(u_hca, SHCA_CQ, (unsigned)u_slot, NULL);
	uint64_t ring = shca_arena_alloc(&u_fab, (unsigned)u_slot, 4096);
	struct shca_cq_ring *head = (void *)shca_arena(&u_fab, (unsigned)u_slot, ring, 4096);

	cq->stride = sizeof(struct shca_cqe);
	atomic_store(&head->bias, 7);
	atomic_store(&cq->polled, 5);
	atomic_store(&head->tail, 7 + 5 + holds);
	cq->channel = channel + 1;
	atomic_store(&cq->ring, ring << 8 | 3);
	atomic_store(&cq->arm, arm);
	shca_table_publish(cq);
	return cq;
}

static void just_live_and_owe(unsigned slot, void *arg)
{
	(void)arg;
	atomic_store(&u_fab.hdr->procs[slot].owes, 1);
}

/* Checks that reaping a process that owes no event wakes nobody. */
static void reaping_others_wakes_nobody(void **state)
{
	struct u_child c = u_fork(just_live, NULL);
	struct shca_cq_entry *cq;
	uint32_t id;
	int fd;

	(void)state;
	id = (uint32_t)shca_event_create(&u_fab, (unsigned)u_slot, &fd);
	cq = armed_cq(id, SHCA_ARM_ANY, 1);
	u_kill(c);
	shca_reap_all(&u_fab);
	t_eq(readable(fd), false);
	t_eq(atomic_load(&cq->arm), SHCA_ARM_ANY);
	close(fd);
}

static void reaping_wakes_waiters(void **state)
{
	struct u_child c = u_fork(just_live_and_owe, NULL);
	struct shca_cq_entry *cq[8];
	uint64_t dead = (uint64_t)c.slot << 8;
	uint32_t id[8], i;
	int fd[8];

	(void)state;
	for (i = 0; i < 8; i++)
		id[i] = (uint32_t)shca_event_create(&u_fab, (unsigned)u_slot, &fd[i]);
	cq[0] = armed_cq(id[0], SHCA_ARM_ANY, 1); /* wakes */
	cq[1] = armed_cq(id[1], SHCA_ARM_NONE, 1);
	cq[2] = armed_cq(id[2], SHCA_ARM_ANY, 0);
	cq[3] = armed_cq(id[3], SHCA_ARM_FIRING | dead, 0); /* wakes */
	cq[4] = armed_cq(id[4], SHCA_ARM_SOLICITED, 0);
	cq[5] = armed_cq(id[5], SHCA_ARM_SOLICITED, 2);   /* wakes */
	cq[6] = armed_cq(id[6], SHCA_ARM_HELD | dead, 0); /* wakes */
	cq[7] = armed_cq(id[7], SHCA_ARM_HELD | (uint64_t)u_slot << 8, 1);
	u_kill(c);
	shca_reap_all(&u_fab);
	for (i = 0; i < 8; i++) {
		bool wakes = i == 0 || i == 3 || i == 5 || i == 6;

		t_eq(readable(fd[i]), wakes);
		t_eq(atomic_load(&cq[i]->events), wakes);
		if (wakes)
			t_eq(atomic_load(&cq[i]->arm), SHCA_ARM_NONE);
		close(fd[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FABRIC(events_cross_processes),      IN_FABRIC(many_channels),
		IN_FABRIC(channels_are_known),          IN_FABRIC(reaping_wakes_waiters),
		IN_FABRIC(reaping_others_wakes_nobody), IN_FABRIC(forgetting_loses_no_others),
	};

	alarm(120); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
