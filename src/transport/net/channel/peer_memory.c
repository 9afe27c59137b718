/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process says in its inbox's segment what its process id is, and where in its memory its
 * endpoint's nonce lies: the proof. The id may name nobody here, or another process: if the other
 * one is in a PID namespace of its own, or has died. So each copy reads the proof as well, in the
 * same system call, which reads the memory of one process only.
 */
#include "net/channel/peer_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "net/adapter/copy.h"
#include "net/channel/inbox.h"
#include "net/lanes/lane.h"
#include "net/lanes/lane_connect.h"
#include "net/lanes/outbox.h"
#include "net/peers/link.h"
#include "net/peers/link_life.h"

static const char not_its_id[] = "its process id is not valid here";

/* Says why messages of the link's process are not copied from there. As that is likely to hold for
 * all processes of the node, only the first one is worth a warning. */
static void say_why_not(struct tq_net *net, const struct tq_link *link, const char *why)
{
	enum tq_log_level level = net->params->intranode == TQ_INTRANODE_SHM && !net->memory_said
					  ? tq_host_level(net->job, "copying")
					  : TQ_LOG_DEBUG;

	net->memory_said = true;
	tq_log(net->job, level,
	       "Long messages between this process and %s are not copied from one to the other, "
	       "although both are on this node: %s. Processes of a user need the right to read "
	       "each "
	       "other's memory (process_vm_readv): look at kernel.yama.ptrace_scope, and at the "
	       "containers' seccomp profiles and PID namespaces.",
	       tq_link_name(link), why);
}

static void refuse(struct tq_net *net, struct tq_link *link, const char *why)
{
	link->contact->memory = TQ_MEMORY_REFUSED;
	TQ_COUNT(net->stats, copies_refused);
	say_why_not(net, link, why);
}

/* Reads memory of the link's process. Returns 0 or -errno, -ESTALE if another process has its id.
 */
static int read_proven(const struct tq_link *link, void *to, uint64_t addr, uint64_t len)
{
	const struct tq_contact *contact = link->contact;
	uint64_t proof = 0;
	struct iovec here[] = {{to, len}, {&proof, sizeof(proof)}};
	struct iovec there[] = {
		{(void *)(uintptr_t)addr, len},
		{(void *)(uintptr_t)contact->proof, sizeof(proof)},
	};
	ssize_t n = process_vm_readv(contact->pid, here, 2, there, 2, 0);

	if (n < 0)
		return -errno;
	/* Less is read if a part of the memory isn't there. */
	if ((uint64_t)n != len + sizeof(proof))
		return -EFAULT;
	return proof == link->nonce ? 0 : -ESTALE;
}

bool tq_peer_memory_try(struct tq_net *net, struct tq_link *link)
{
	struct tq_contact *contact = link->contact;
	int error;

	tq_assert_held(net->lock);
	if (contact->memory != TQ_MEMORY_UNKNOWN || tq_link_has_failed(link) ||
	    !tq_outbox_attach(net, link))
		return contact->memory == TQ_MEMORY_READABLE;
	tq_outbox_owner(link, &contact->pid, &contact->proof);
	/* No process has an id of 0 or less. */
	error = contact->pid > 0 ? read_proven(link, NULL, 0, 0) : -ESRCH;
	if (error)
		refuse(net, link,
		       error == -ESTALE || error == -EFAULT || error == -ESRCH ? not_its_id
									       : strerror(-error));
	else
		contact->memory = TQ_MEMORY_READABLE;
	return !error;
}

int tq_peer_memory_copy(struct tq_net *net, struct tq_link *link, void *to, uint64_t addr,
			uint64_t len)
{
	int error;

	tq_assert_held(net->lock);
	if (tq_link_has_failed(link) || tq_inbox_is_cut(link) || !tq_peer_memory_try(net, link))
		return -EIO;
	error = read_proven(link, to, addr, len);
	if (error == -EPERM || error == -ENOSYS)
		refuse(net, link, strerror(-error));
	else if (error == -ESTALE)
		refuse(net, link, not_its_id);
	/* Where the link has failed at the sender's end its user may have written to that memory
	 * since. */
	return error || tq_inbox_is_cut(link) ? -EIO : 0;
}

/*
 * Puts go on the control lane, which nothing holds up: inline and without a completion of their own
 * if they are short. Longer ones go from the pool of copies, or in parts from the reserve for
 * pieces where the pool has none. The puts to a peer go in order, which says nothing of when the
 * bytes are seen there.
 */

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
