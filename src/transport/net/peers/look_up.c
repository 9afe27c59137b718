/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/peers/look_up.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/peers/link.h"
#include "net/peers/oob.h"

/* The interval after which the datagram of a look-up is sent again, as it may be lost: at first,
 * and at most. */
#define FIRST_INTERVAL (2 * TQ_MS)
#define LAST_INTERVAL  (256 * TQ_MS)

/* The most processes that nobody here looked up and that wait for tq_look_up_results(). Processes
 * beyond the limit make themselves known again when they repeat their connection requests. */
#define MAX_UNNAMED_RESULTS 65536

/* A look-up under way. */
struct look_up {
	struct tq_locator locator;
	struct tq_look_up_result *result; /* allocated from the start, so no look-up ends without
					     one */
	struct ibv_ah *ah;
	struct tq_timer timer;    /* sends again */
	uint64_t interval, until; /* ns */
	UT_hash_handle hh;        /* tq_look_ups.all */
};

struct tq_look_ups {
	struct look_up *all; /* hash by locator */
	struct tq_look_up_result *first, **last;
	uint32_t nunnamed; /* results of processes that nobody here looked up */
};

static const uint8_t ipv4_prefix[12] = {[10] = 0xff, [11] = 0xff};

int tq_look_up_locator(const struct tq_address *address, struct tq_locator *locator)
{
	const uint8_t *ipv4 = address->gid + sizeof(ipv4_prefix);

	locator->number = tq_get32(address->ud_qpn);
	if (address->link_layer != IBV_LINK_LAYER_ETHERNET) {
		locator->port = tq_get16(address->lid);
		return 0;
	}
	if (memcmp(address->gid, ipv4_prefix, sizeof(ipv4_prefix)))
		return -ENOTSUP;
	locator->port = (uint32_t)ipv4[0] << 24 | ipv4[1] << 16 | ipv4[2] << 8 | ipv4[3];
	return 0;
}

void tq_look_up_enable(struct tq_net *net)
{
	struct tq_look_ups *look_ups = net->look_ups;

	if (look_ups)
		return;
	look_ups = calloc(1, sizeof(*look_ups));
	if (!look_ups)
		return;
	look_ups->last = &look_ups->first;
	net->look_ups = look_ups;
}

static struct tq_look_up_result *make_result(const struct tq_locator *locator)
{
	struct tq_look_up_result *result = calloc(1, sizeof(*result));

	if (result)
		result->locator = *locator;
	return result;
}

/* Appends a result to the list. `address` is NULL if there is an error. */
static void report(struct tq_net *net, struct tq_look_up_result *result,
		   const struct tq_address *address, int error)
{
	struct tq_look_ups *look_ups = net->look_ups;

	result->error = error;
	if (address)
		result->address = *address;
	*look_ups->last = result;
	look_ups->last = &result->next;
	atomic_store_explicit(&net->found_waiting, true, memory_order_relaxed);
}

struct tq_look_up_result *tq_look_up_results(struct tq_net *net)
{
	struct tq_look_ups *look_ups = net->look_ups;
	struct tq_look_up_result *list;

	tq_assert_held(net->lock);
	if (!look_ups || !look_ups->first)
		return NULL;
	list = look_ups->first;
	look_ups->first = NULL;
	look_ups->last = &look_ups->first;
	look_ups->nunnamed = 0;
	atomic_store_explicit(&net->found_waiting, false, memory_order_relaxed);
	return list;
}

static void destroy(struct tq_net *net, struct look_up *look_up)
{
	HASH_DEL(net->look_ups->all, look_up);
	tq_timer_stop(net, &look_up->timer);
	net->ndatagrams--;
	ibv_destroy_ah(look_up->ah);
	free(look_up->result);
	free(look_up);
}

/* Ends a look-up with its result. */
static void end(struct tq_net *net, struct look_up *look_up, const struct tq_address *address,
		int error)
{
	report(net, look_up->result, address, error);
	look_up->result = NULL;
	destroy(net, look_up);
}

static struct look_up *find(struct tq_net *net, const struct tq_locator *locator)
{
	struct look_up *look_up;

	HASH_FIND(hh, net->look_ups->all, locator, sizeof(*locator), look_up);
	return look_up;
}

/* ---- asking ---- */

static void ask(struct tq_net *net, void *owner, uint64_t now)
{
	struct look_up *look_up = owner;
	struct tq_oob_look_up question = {.address = net->connections->address};

	if (now >= look_up->until) {
		tq_log(net->job, TQ_LOG_ERROR,
		       "No process answers at port %#x, queue pair %#x: it has ended, or is in "
		       "another fabric or partition, or of another version.",
		       look_up->locator.port, look_up->locator.number);
		end(net, look_up, NULL, -ETIMEDOUT);
		return;
	}
	question.hdr = tq_oob_stranger(net, TQ_OOB_LOOK_UP);
	/* All processes that can be looked up have one key. */
	tq_oob_send_to(net, look_up->ah, look_up->locator.number,
		       tq_get32(question.address.ud_qkey), &question, sizeof(question));
	tq_timer_arm(net, &look_up->timer, now + look_up->interval, ask, look_up);
	if (look_up->interval < LAST_INTERVAL)
		look_up->interval *= 2;
}

/* Makes the address handle of a port. Returns 0, -EINVAL if there is no such port, or -ENOMEM. */
static int make_path(struct tq_net *net, const struct tq_locator *locator, struct ibv_ah **ah)
{
	union ibv_gid gid = net->dev.gid;
	struct ibv_ah_attr path;

	if (net->dev.port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		memcpy(gid.raw, ipv4_prefix, sizeof(ipv4_prefix));
		for (int i = 0; i < 4; i++)
			gid.raw[12 + i] = (uint8_t)(locator->port >> (24 - 8 * i));
	} else if (!locator->port || locator->port > 0xbfff) {
		return -EINVAL; /* no unicast LID */
	}
	tq_address_path(net, &gid, (uint16_t)locator->port, &path);
	/* The GID of a port isn't known by its LID, which is enough within a subnet. */
	if (net->dev.port.link_layer != IBV_LINK_LAYER_ETHERNET)
		path.is_global = 0;
	*ah = ibv_create_ah(net->dev.pd, &path);
	return *ah ? 0 : errno == ENOMEM ? -ENOMEM : -EINVAL;
}

int tq_look_up_start(struct tq_net *net, const struct tq_locator *locator)
{
	struct tq_look_up_result *result;
	struct tq_locator own;
	struct look_up *look_up;
	int error;

	tq_assert_held(net->lock);
	if (!net->look_ups)
		return -ENOMEM;
	error = tq_look_up_locator(&net->connections->address, &own);
	if (error)
		return error;
	if (!memcmp(&own, locator, sizeof(own))) {
		result = make_result(&own);
		if (!result)
			return -ENOMEM;
		report(net, result, &net->connections->address, 0);
		return 0;
	}
	if (locator->number < 2 || locator->number >> 24)
		return -EINVAL;
	if (find(net, locator))
		return 0;
	look_up = calloc(1, sizeof(*look_up));
	if (!look_up)
		return -ENOMEM;
	look_up->locator = *locator;
	look_up->result = make_result(locator);
	error = look_up->result ? make_path(net, locator, &look_up->ah) : -ENOMEM;
	if (error) {
		free(look_up->result);
		free(look_up);
		return error;
	}
	look_up->interval = FIRST_INTERVAL;
	look_up->until = tq_now() + (uint64_t)net->params->connect_timeout * 1000 * TQ_MS;
	HASH_ADD(hh, net->look_ups->all, locator, sizeof(look_up->locator), look_up);
	net->ndatagrams++;
	ask(net, look_up, tq_now());
	return 0;
}

/* ---- answering ---- */

static void answer(struct tq_net *net, const struct tq_locator *locator)
{
	struct tq_oob_look_up reply = {.address = net->connections->address};
	struct ibv_ah *ah;

	if (make_path(net, locator, &ah))
		return; /* will be asked again */
	reply.hdr = tq_oob_stranger(net, TQ_OOB_LOOKED_UP);
	tq_oob_send_to(net, ah, locator->number, tq_get32(reply.address.ud_qkey), &reply,
		       sizeof(reply));
	ibv_destroy_ah(ah);
}

void tq_look_up_on_datagram(struct tq_net *net, const struct tq_oob_look_up *datagram)
{
	struct tq_address address;
	struct tq_locator locator;
	struct look_up *look_up;

	if (!net->look_ups ||
	    tq_address_check(net, &datagram->address, sizeof(address), &address) ||
	    tq_look_up_locator(&address, &locator)) {
		TQ_COUNT(net->stats, dropped);
		return;
	}
	if (datagram->hdr.type == TQ_OOB_LOOK_UP) {
		answer(net, &locator);
		tq_look_up_add_unnamed(net, &address);
		return;
	}
	look_up = find(net, &locator);
	if (!look_up)
		return; /* a second answer */
	end(net, look_up, &address, 0);
}

void tq_look_up_add_unnamed(struct tq_net *net, const struct tq_address *address)
{
	struct tq_look_ups *look_ups = net->look_ups;
	struct tq_look_up_result *result = NULL;
	struct tq_locator locator;
	const struct tq_link *link;

	if (!look_ups || tq_look_up_locator(address, &locator))
		return;
	link = tq_link_by_nonce(net, tq_get64(address->nonce));
	if (link && link->peer)
		return;
	if (look_ups->nunnamed < MAX_UNNAMED_RESULTS)
		result = make_result(&locator);
	if (!result) {
		TQ_COUNT(net->stats, dropped);
		return;
	}
	look_ups->nunnamed++;
	report(net, result, address, 0);
}

void tq_look_up_close(struct tq_net *net)
{
	struct look_up *look_up, *tmp;
	struct tq_look_up_result *result, *next;

	if (!net->look_ups)
		return;
	HASH_ITER(hh, net->look_ups->all, look_up, tmp)
		destroy(net, look_up);
	for (result = net->look_ups->first; result; result = next) {
		next = result->next;
		free(result);
	}
	free(net->look_ups);
	net->look_ups = NULL;
}
