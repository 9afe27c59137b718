/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint, its peers and registrations. */
#include <errno.h>
#include <stdlib.h>
#include <tupleq/tupleq.h>

#include "../expect.h"
#include "tupleq.h"

struct tq_peer {
	unsigned index;
};

struct tq_ep {
	int unused;
};

struct tq_mr {
	uint32_t key;
};

static struct tq_ep endpoint;
static struct tq_peer peers[FAKE_PEERS] = {{0}, {1}};
static uint32_t keys;
static unsigned registrations;

unsigned fake_registrations(void)
{
	return registrations;
}

struct tq_peer *fake_peer(unsigned index)
{
	return &peers[index];
}

unsigned fake_index(const struct tq_peer *peer)
{
	return peer->index;
}

struct tq_locator fake_locator(unsigned peer)
{
	return (struct tq_locator){1, 100 + peer};
}

/* ---- what the provider calls: the endpoint ---- */

struct tq_params *tq_params_new(void)
{
	return calloc(1, 1);
}

void tq_params_free(struct tq_params *params)
{
	free(params);
}

const struct tq_param_desc *tq_param_desc(unsigned i)
{
	(void)i;
	return NULL;
}

int tq_param_set(struct tq_params *params, const char *name, const char *value, char *why,
		 size_t size)
{
	(void)params;
	(void)name;
	(void)value;
	(void)why;
	(void)size;
	return 0;
}

int tq_ports(const struct tq_params *params, const struct tq_job *job, struct tq_port *ports,
	     unsigned room)
{
	(void)params;
	(void)job;
	t_holds(room);
	ports[0] = (struct tq_port){.device = "fake", .number = 1, .infiniband = true};
	return 1;
}

int tq_open(const struct tq_params *params, const struct tq_job *job,
	    const struct tq_mr_cache *cache, struct tq_ep **ep)
{
	(void)params;
	(void)cache;
	(void)job;
	*ep = &endpoint;
	return 0;
}

void tq_close(struct tq_ep *ep)
{
	(void)ep;
}

const char *tq_device_text(const struct tq_ep *ep)
{
	(void)ep;
	return "fake port 1";
}

const struct tq_counter_desc *tq_counter_desc(unsigned i)
{
	(void)i;
	return NULL;
}

uint64_t tq_counter(const struct tq_ep *ep, unsigned i)
{
	(void)ep;
	return i;
}

uint64_t tq_counter_high(const struct tq_ep *ep, unsigned i)
{
	(void)ep;
	return i;
}

int tq_progress(struct tq_ep *ep)
{
	(void)ep;
	return 0;
}

int tq_thread_progress(struct tq_ep *ep, enum tq_thread_duty duty)
{
	(void)ep;
	(void)duty;
	return 0;
}

/* ---- what the provider calls: peers and memory ---- */

int tq_locator(const struct tq_ep *ep, struct tq_locator *locator)
{
	(void)ep;
	*locator = (struct tq_locator){1, 50};
	return 0;
}

int tq_peer_locator(const struct tq_peer *peer, struct tq_locator *locator)
{
	*locator = fake_locator(peer->index);
	return 0;
}

void tq_look_up_open(struct tq_ep *ep, tq_found *found, void *arg)
{
	(void)ep;
	for (unsigned i = 0; i < FAKE_PEERS; i++) {
		const struct tq_locator locator = fake_locator(i);

		found(arg, &locator, fake_peer(i), 1, 0);
	}
}

int tq_look_up(struct tq_ep *ep, const struct tq_locator *locator)
{
	(void)ep;
	(void)locator;
	return -EINVAL;
}

int tq_peer_add(struct tq_ep *ep, const void *address, size_t len, const char *name,
		struct tq_peer **peer)
{
	(void)ep;
	(void)name;
	t_eq(len, 1);
	*peer = (struct tq_peer *)(uintptr_t)address;
	return 0;
}

struct tq_peer *tq_peer_find(struct tq_ep *ep, const void *address, size_t len)
{
	(void)ep;
	(void)len;
	return (struct tq_peer *)(uintptr_t)address;
}

int tq_peer_error(struct tq_peer *peer)
{
	(void)peer;
	return 0;
}

void tq_peer_connect(struct tq_peer *peer)
{
	(void)peer;
}

void tq_peer_give_up(struct tq_peer *peer, const char *why)
{
	(void)peer;
	t_fail("the provider gives a peer up: %s", why);
}

int tq_mr_expose(struct tq_ep *ep, void *addr, size_t len, unsigned access, struct tq_mr **mr)
{
	(void)ep;
	(void)addr;
	(void)len;
	(void)access;
	*mr = malloc(sizeof(**mr));
	(*mr)->key = ++keys;
	registrations++;
	return 0;
}

void tq_mr_deregister(struct tq_mr *mr)
{
	registrations--;
	free(mr);
}

uint32_t tq_mr_key(const struct tq_mr *mr)
{
	return mr->key;
}

enum tq_atomics tq_rma_atomics(const struct tq_ep *ep)
{
	(void)ep;
	return TQ_ATOMICS_NONE;
}

int tq_rma(struct tq_peer *peer, const struct tq_rma *rma)
{
	(void)peer;
	(void)rma;
	return -EIO;
}
