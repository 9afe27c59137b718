/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes and their names: one that ends, and another one that gets its name; one that doesn't
 * answer. The functions of libtupleq that are called are in this file.
 *
 * test_peer
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/providers/fi_prov.h>

#include "av.h"
#include "check.h"
#include "log.h"

struct tq_peer {
	int error; /* of its connection */
};

struct fi_provider tf_provider = {.name = "tupleq"};

/* ---- libtupleq ---- */

static const struct tq_locator locator = {1, 77};
static struct tq_peer *answers; /* the process that has the name; NULL: none */
static bool known;              /* it was added as a peer */
static struct tf_domain domain;
static unsigned look_ups, polls;
static bool asked;

int tq_look_up(struct tq_ep *ep, const struct tq_locator *name)
{
	(void)ep;
	t_mem_eq(name, &locator, sizeof(locator));
	look_ups++;
	asked = true;
	return 0;
}

int tq_progress(struct tq_ep *ep)
{
	(void)ep;
	polls++;
	if (asked && answers) {
		asked = false;
		tf_peer_found(&domain, &locator, answers, sizeof(*answers), 0);
	}
	return 0;
}

int tq_thread_progress(struct tq_ep *ep, enum tq_thread_duty duty)
{
	(void)ep;
	(void)duty;
	return 0;
}

int tq_peer_add(struct tq_ep *ep, const void *address, size_t len, const char *name,
		struct tq_peer **peer)
{
	(void)ep;
	(void)len;
	(void)name;
	if (known)
		return -EEXIST;
	known = true;
	*peer = (struct tq_peer *)(uintptr_t)address;
	return 0;
}

struct tq_peer *tq_peer_find(struct tq_ep *ep, const void *address, size_t len)
{
	(void)ep;
	(void)len;
	return (struct tq_peer *)(uintptr_t)address;
}

void tq_peer_connect(struct tq_peer *peer)
{
	(void)peer;
}

int tq_peer_error(struct tq_peer *peer)
{
	return peer->error;
}

int tq_peer_locator(const struct tq_peer *peer, struct tq_locator *name)
{
	(void)peer;
	*name = locator;
	return 0;
}

int tq_ctx_join(struct tq_ctx *ctx, struct tq_peer *peer)
{
	(void)ctx;
	(void)peer;
	return 0;
}

struct tf_contexts *tf_contexts_get(struct tf_domain *in, uint32_t number)
{
	(void)in;
	(void)number;
	return NULL;
}

/* ---- tests ---- */

static struct fid_av *open_av(void)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct fid_av *av;

	domain = (struct tf_domain){.api_version = FI_VERSION(1, 9)};
	pthread_mutex_init(&domain.lock, NULL);
	answers = NULL;
	known = asked = false;
	look_ups = polls = 0;
	t_ok(tf_av_open(&domain.fid, &attr, &av, NULL));
	return av;
}

static void close_av(struct fid_av *av)
{
	t_ok(fi_close(&av->fid));
	tf_peers_free(&domain);
	pthread_mutex_destroy(&domain.lock);
}

static struct tf_dest *insert(struct fid_av *av, fi_addr_t *index)
{
	const struct tf_addr addr = tf_addr_make(&locator, 0);

	t_eq(fi_av_insert(av, &addr, 1, index, 0, NULL), 1);
	return tf_av_dest(tf_container(av, struct tf_av, fid), *index);
}

static int find(struct tf_dest *dest, struct tq_peer **tq)
{
	struct tf_peer *peer;

	return tf_dest_find(dest, &peer, tq);
}

/* An entry stands for the process that it has found; one that is inserted after that process's end
 * stands for the next one. Messages come from the newer entry's address. */
static void test_reuse(void **state)
{
	struct tq_peer old = {0}, new = {0}, *tq;
	struct tf_dest *first, *second, *third;
	struct fid_av *av = open_av();
	fi_addr_t indices[3];

	(void)state;
	first = insert(av, &indices[0]);
	answers = &old;
	t_ok(find(first, &tq));
	t_holds(tq == &old);
	second = insert(av, &indices[1]);
	t_ok(find(second, &tq));
	t_holds(tq == &old);
	t_eq(look_ups, 1);
	t_eq(tf_av_find(first->av, &old, 0), indices[0]);
	old.error = -EIO;
	answers = &new;
	known = false;
	t_ok(find(first, &tq));
	t_holds(tq == &old);
	third = insert(av, &indices[2]);
	t_ok(find(third, &tq));
	t_holds(tq == &new);
	t_eq(look_ups, 2);
	t_eq(tf_av_find(third->av, &new, 0), indices[2]);
	t_ok(find(first, &tq));
	t_holds(tq == &old);
	/* The place of an entry that was removed stands for the new process, too. */
	t_ok(fi_av_remove(av, &indices[0], 1, 0));
	t_ok(find(insert(av, &indices[0]), &tq));
	t_holds(tq == &new);
	t_eq(look_ups, 2);
	close_av(av);
}

/* The process is there, but its connection has failed: it is found, and not asked for ever. */
static void test_failed(void **state)
{
	struct tq_peer process = {0}, *tq;
	struct fid_av *av = open_av();
	fi_addr_t index;

	(void)state;
	answers = &process;
	t_ok(find(insert(av, &index), &tq));
	process.error = -EIO;
	t_ok(find(insert(av, &index), &tq));
	t_holds(tq == &process);
	t_eq(look_ups, 2);
	close_av(av);
}

/* Only the first operations with a process wait for it. */
static void test_silent(void **state)
{
	struct tq_peer process = {0}, *tq;
	struct fid_av *av = open_av();
	struct tf_dest *dest;
	unsigned before;
	fi_addr_t index;

	(void)state;
	dest = insert(av, &index);
	t_eq(find(dest, &tq), -FI_EAGAIN);
	for (unsigned i = 0; i < 1000; i++) {
		before = polls;
		t_eq(find(dest, &tq), -FI_EAGAIN);
		t_eq(polls, before + 1);
	}
	t_eq(look_ups, 1);
	answers = &process;
	t_ok(find(dest, &tq));
	t_holds(tq == &process);
	close_av(av);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reuse),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
