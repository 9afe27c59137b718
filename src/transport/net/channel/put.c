/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts go on the control lane, which nothing holds up: inline and without a completion of their own
 * if they are short. Longer ones go from the pool of copies, or in parts from the reserve for
 * pieces where the pool has none. The puts to a peer go in order, which says nothing of when the
 * bytes are seen there.
 */
#include "net/channel/put.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/adapter/copy.h"
#include "net/lanes/lane.h"
#include "net/lanes/lane_connect.h"
#include "net/peers/link.h"
#include "net/peers/link_fail.h"

/* Puts that may wait for a peer. A choice: more than a caller starts that heeds -EAGAIN, and a
 * bound for the memory of one that doesn't. */
#define PUTS_MAX 65536u

struct tq_put {
	uint64_t addr;
	uint32_t key;
	uint32_t len;
	struct tq_put *next, *prev;
	unsigned char data[];
};

static struct tq_put *put_new(const void *data, uint32_t len, uint64_t addr, uint32_t key)
{
	struct tq_put *put = malloc(sizeof(*put) + len);

	if (!put)
		return NULL;
	put->addr = addr;
	put->key = key;
	put->len = len;
	if (len)
		memcpy(put->data, data, len);
	return put;
}

static void again(struct tq_net *net, struct tq_posted *posted)
{
	struct tq_link *link = posted->link;
	const void *data = posted->bytes ? posted->bytes : posted->copy.addr;
	struct tq_put *put = put_new(data, posted->len, posted->addr, posted->key);

	if (!put) {
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "no memory to write again");
		return;
	}
	if (!link->puts)
		DL_APPEND2(net->putting, link, putting_prev, putting_next);
	DL_PREPEND(link->puts, put);
	link->nputs++;
	TQ_LEVEL(net->stats, puts_waiting, 1);
}

static void keep(struct tq_posted *posted, const struct ibv_send_wr *wr)
{
	posted->addr = wr->wr.rdma.remote_addr;
	posted->key = wr->wr.rdma.rkey;
}

static int post_copy(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		     struct ibv_send_wr *wr)
{
	struct ibv_sge *sge = wr->sg_list;
	struct tq_posted *posted;
	struct tq_sg copy;
	int rc;

	if (!tq_copy_get(net, sge->length, &copy) && !tq_copy_get_piece(net, sge->length, &copy))
		return -EAGAIN;
	memcpy(copy.addr, (void *)(uintptr_t)sge->addr, sge->length);
	sge->addr = (uintptr_t)copy.addr;
	sge->lkey = copy.reg->lkey;
	rc = tq_lane_post_copy(net, lane, link, wr, &copy, again, &posted);
	if (rc)
		tq_copy_put(net, &copy);
	else
		keep(posted, wr);
	return rc;
}

/* Posts one put. Returns 0, -EAGAIN or -EIO. */
static int post(struct tq_net *net, struct tq_link *link, const void *data, uint32_t len,
		uint64_t addr, uint32_t key)
{
	struct tq_lane *lane = tq_lane_request(net, link, TQ_LANE_CONTROL);
	struct ibv_sge sge = {.addr = (uintptr_t)data, .length = len};
	/* Over XRC the target of RDMA is the protection domain of an SRQ: any of that process's. */
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = len ? 1 : 0,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {.remote_addr = addr, .rkey = key},
		.qp_type.xrc.remote_srqn = link->srqn[TQ_SMALL],
	};
	int rc;

	if (!lane || !tq_link_can_send(link))
		return -EAGAIN;
	if (len <= net->limits.max_inline) {
		wr.send_flags = len ? IBV_SEND_INLINE : 0;
		rc = tq_lane_post(net, lane, link, &wr, NULL, false);
		if (!rc)
			keep(tq_lane_keep(lane, again, data, len), &wr);
	} else {
		rc = post_copy(net, lane, link, &wr);
	}
	if (!rc)
		TQ_COUNT(net->stats, puts);
	else if (rc == -EIO)
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "an RDMA write could not be posted");
	return rc;
}

/* Makes a list of puts, each no longer than a buffer of the reserve. NULL: there is no memory. */
static struct tq_put *parts_new(const struct tq_net *net, const void *data, uint32_t len,
				uint64_t addr, uint32_t key)
{
	struct tq_put *parts = NULL, *put;
	uint32_t done = 0, n;

	do {
		n = len - done < net->limits.control_data_max ? len - done
							      : net->limits.control_data_max;
		put = put_new((const char *)data + done, n, addr + done, key);
		if (!put)
			goto no_memory;
		DL_APPEND(parts, put);
		done += n;
	} while (done < len);
	return parts;

no_memory:
	while ((put = parts)) {
		DL_DELETE(parts, put);
		free(put);
	}
	return NULL;
}

static int enqueue(struct tq_net *net, struct tq_link *link, const void *data, uint32_t len,
		   uint64_t addr, uint32_t key)
{
	struct tq_put *parts, *put;

	if (link->nputs >= PUTS_MAX)
		return -EAGAIN;
	parts = parts_new(net, data, len, addr, key);
	if (!parts)
		return -ENOMEM;
	if (!link->puts)
		DL_APPEND2(net->putting, link, putting_prev, putting_next);
	DL_FOREACH(parts, put) {
		link->nputs++;
		TQ_LEVEL(net->stats, puts_waiting, 1);
	}
	DL_CONCAT(link->puts, parts);
	return 0;
}

static void dequeue(struct tq_net *net, struct tq_link *link)
{
	struct tq_put *put = link->puts;

	DL_DELETE(link->puts, put);
	link->nputs--;
	TQ_LEVEL(net->stats, puts_waiting, -1);
	free(put);
	if (!link->puts)
		DL_DELETE2(net->putting, link, putting_prev, putting_next);
}

int tq_put_start(struct tq_net *net, struct tq_link *link, const void *data, uint32_t len,
		 uint64_t addr, uint32_t key)
{
	int rc = -EAGAIN;

	tq_assert_held(net->lock);
	if (tq_link_has_failed(link))
		return -EIO;
	if (!link->puts)
		rc = post(net, link, data, len, addr, key);
	return rc == -EAGAIN ? enqueue(net, link, data, len, addr, key) : rc;
}

void tq_put_forget(struct tq_net *net, struct tq_link *link)
{
	while (link->puts)
		dequeue(net, link);
}

int tq_put_poll(struct tq_net *net)
{
	struct tq_link *link, *next;
	int events = 0;

	for (link = net->putting; link; link = next) {
		next = link->putting_next;
		while (link->puts && !tq_link_has_failed(link)) {
			const struct tq_put *put = link->puts;

			if (post(net, link, put->data, put->len, put->addr, put->key))
				break;
			dequeue(net, link);
			events++;
		}
		if (tq_link_has_failed(link))
			tq_put_forget(net, link);
	}
	return events;
}
