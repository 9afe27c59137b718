/* SPDX-License-Identifier: BSD-3-Clause */
/* stub.c - see stub.h. */
#include "stub.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "../expect.h"
#include "played.h"

/* The stub's own definitions of the opaque types in tupleq.h. */
struct tq_peer {
	int process;
};

struct tq_ctx {
	unsigned number;
	const struct tq_match_ops *ops;
	void *arg;
};

struct tq_ep {
	struct tq_job job;
	tq_found *found;
	void *found_arg;
	struct tq_ctx ctxs[2 * (STUB_REPLY + 1)]; /* of two interfaces */
	unsigned nctxs;
	struct tq_peer peers[STUB_PROCESSES];
};

struct stub stub;
static struct tq_ep endpoint;

/* ---- calls of libportals ---- */

struct stub_side stub_open(void)
{
	struct stub_side side;
	ptl_pt_index_t pt;

	stub = (struct stub){.nsent = 0};
	t_ptl_ok(PtlInit());
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL,
			   NULL, &side.ni));
	t_ptl_ok(PtlEQAlloc(side.ni, STUB_MOST, &side.eq));
	t_ptl_ok(PtlPTAlloc(side.ni, 0, side.eq, STUB_PT, &pt));
	/* The answers' entry isn't the test's. */
	stub.nentries = 0;
	return side;
}

void stub_close(const struct stub_side *side)
{
	t_ptl_ok(PtlNIFini(side->ni));
	PtlFini();
}

ptl_event_t stub_event(const struct stub_side *side, ptl_event_kind_t type, ptl_ni_fail_t fail)
{
	ptl_event_t event;

	t_ptl_ok(PtlEQGet(side->eq, &event));
	t_eq(event.type, type);
	t_eq(event.ni_fail_type, fail);
	return event;
}

void stub_no_event(const struct stub_side *side)
{
	ptl_event_t event;

	t_ptl(PtlEQGet(side->eq, &event), PTL_EQ_EMPTY);
}

ptl_me_t stub_me(void *start, size_t length, unsigned options)
{
	return (ptl_me_t){
		.start = start,
		.length = length,
		.ct_handle = PTL_CT_NONE,
		.uid = PTL_UID_ANY,
		.options = options | PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
			   PTL_ME_EVENT_UNLINK_DISABLE,
		.match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
	};
}

const struct stub_entry *stub_append(const struct stub_side *side, const ptl_me_t *me,
				     ptl_list_t list, ptl_handle_me_t *handle)
{
	ptl_handle_me_t unused;

	t_ptl_ok(PtlMEAppend(side->ni, STUB_PT, me, list, NULL, handle ? handle : &unused));
	return list == PTL_PRIORITY_LIST ? &stub.entries[stub.nentries - 1] : NULL;
}

ptl_process_t stub_id(int process)
{
	struct tq_locator locator = played_locator(process);

	return (ptl_process_t){.phys = {locator.port, locator.number}};
}

/* ---- the network's reports ---- */

void stub_found(int process, int error)
{
	struct tq_locator locator = played_locator(process);

	endpoint.found(endpoint.found_arg, &locator, error ? NULL : &process, sizeof(process),
		       error);
}

void stub_end_send(const struct stub_sent *sent, int error)
{
	const struct tq_status status = {.error = error};

	endpoint.job.complete(sent->user, &status);
}

/* ---- messages ---- */

struct p4_wire_request stub_request(int from, enum p4_op_kind kind, uint64_t length)
{
	struct tq_locator locator = played_locator(from);

	return (struct p4_wire_request){
		.rlength = htole64(length),
		.nid = htole32(locator.port),
		.pid = htole32(locator.number),
		.kind = (uint8_t)kind,
	};
}

static struct tq_envelope envelope(int from, uint64_t bits, const void *header, uint64_t length)
{
	return (struct tq_envelope){
		.source = from,
		.peer = &endpoint.peers[from],
		.bits = bits,
		.length = length,
		.header = header,
	};
}

enum tq_verdict stub_match_taken(const struct stub_entry *entry, int from, uint64_t bits,
				 const void *header, uint64_t length, void *taken,
				 struct tq_take *take)
{
	const struct tq_ctx *ctx = &endpoint.ctxs[entry->ctx];
	struct tq_envelope message = envelope(from, bits, header, length);

	message.taken = taken;
	*take = (struct tq_take){.user = entry->user};
	return ctx->ops->match(ctx->arg, entry->user, &message, take);
}

enum tq_verdict stub_match(const struct stub_entry *entry, int from, uint64_t bits,
			   const void *header, uint64_t length, struct tq_take *take)
{
	return stub_match_taken(entry, from, bits, header, length, NULL, take);
}

enum tq_disposition stub_unexpected(unsigned ctx, int from, uint64_t bits, const void *header,
				    uint64_t length, struct tq_take *take)
{
	const struct tq_envelope message = envelope(from, bits, header, length);

	*take = (struct tq_take){.user = NULL};
	return endpoint.ctxs[ctx].ops->unexpected(endpoint.ctxs[ctx].arg, &message, take);
}

void stub_done(unsigned ctx, void *user, int error)
{
	const struct tq_arrival arrival = {.error = error};

	endpoint.ctxs[ctx].ops->done(endpoint.ctxs[ctx].arg, user, &arrival);
}

void stub_direct(const struct stub_entry *entry, uint64_t bits, const void *header, uint64_t length)
{
	const struct tq_ctx *ctx = &endpoint.ctxs[entry->ctx];
	const struct tq_arrival arrival = {
		.envelope = envelope(entry->from, bits, header, length),
		.received = length,
		.queue = true,
	};

	ctx->ops->done(ctx->arg, entry->user, &arrival);
}

/* ---- the endpoint ---- */

int tq_open(const struct tq_params *params, const struct tq_job *job,
	    const struct tq_mr_cache *cache, struct tq_ep **ep)
{
	(void)params;
	(void)cache;
	endpoint = (struct tq_ep){.job = *job};
	for (int i = 0; i < STUB_PROCESSES; i++)
		endpoint.peers[i].process = i;
	*ep = &endpoint;
	return 0;
}

void tq_close(struct tq_ep *ep)
{
	(void)ep;
}

int tq_progress(struct tq_ep *ep)
{
	(void)ep;
	if (stub.progress)
		stub.progress();
	return 0;
}

/* ---- processes ---- */

int tq_peer_locator(const struct tq_peer *peer, struct tq_locator *locator)
{
	*locator = played_locator(peer->process);
	return 0;
}

void tq_look_up_open(struct tq_ep *ep, tq_found *found, void *arg)
{
	ep->found = found;
	ep->found_arg = arg;
}

int tq_look_up(struct tq_ep *ep, const struct tq_locator *locator)
{
	(void)ep;
	(void)locator;
	stub.nlook_ups++;
	return 0; /* stub_found() answers */
}

int tq_peer_add(struct tq_ep *ep, const void *address, size_t len, const char *name,
		struct tq_peer **peer)
{
	int process;

	(void)name;
	t_eq(len, sizeof(process));
	memcpy(&process, address, len);
	*peer = &ep->peers[process];
	if (stub.added)
		stub.added(process);
	return 0;
}

void tq_peer_connect(struct tq_peer *peer)
{
	(void)peer;
}

/* ---- contexts ---- */

int tq_ctx_add_bits(struct tq_ep *ep, uint32_t id, struct tq_peer *const peers[], int npeers,
		    int rank, unsigned flags, size_t header_len, const struct tq_match_ops *ops,
		    void *arg, struct tq_ctx **ctx)
{
	(void)id;
	(void)peers;
	(void)npeers;
	(void)rank;
	(void)flags;
	(void)header_len;
	*ctx = &ep->ctxs[ep->nctxs];
	**ctx = (struct tq_ctx){.number = ep->nctxs++, .ops = ops, .arg = arg};
	return 0;
}

int tq_ctx_join(struct tq_ctx *ctx, struct tq_peer *peer)
{
	(void)ctx;
	return peer->process;
}

void tq_ctx_set_flags(struct tq_ctx *ctx, unsigned flags)
{
	(void)ctx;
	(void)flags;
}

bool tq_ctx_has_queues(struct tq_ctx *ctx)
{
	(void)ctx;
	return false;
}

void tq_ctx_remove(struct tq_ctx *ctx)
{
	ctx->ops = NULL;
}

int tq_entry_append(struct tq_ctx *ctx, int rank, uint64_t bits, uint64_t ignore,
		    const struct tq_buf *buf, unsigned flags, void *user, tq_entry_id *id)
{
	(void)bits;
	(void)ignore;
	(void)buf;
	(void)flags;
	t_true(stub.nentries < STUB_MOST, "too many entries");
	stub.entries[stub.nentries++] = (struct stub_entry){.ctx = ctx->number, rank, user};
	if (id)
		*id = stub.nentries;
	if (stub.appended)
		stub.appended(&stub.entries[stub.nentries - 1]);
	return 0;
}

int tq_entry_remove(struct tq_ctx *ctx, tq_entry_id id)
{
	t_true(ctx->ops, "a context is used that was removed");
	t_eq(stub.entries[id - 1].ctx, ctx->number);
	return 0;
}

int tq_send_bits(struct tq_ctx *ctx, int rank, uint64_t bits, const void *header,
		 const struct tq_buf *buf, unsigned flags, void *user, struct tq_req **req)
{
	struct stub_sent *sent = &stub.sent[stub.nsent++];

	(void)bits;
	(void)flags;
	t_true(stub.nsent < STUB_MOST, "too many messages");
	*sent = (struct stub_sent){.ctx = ctx->number, .to = rank, .buf = *buf, .user = user};
	memcpy(sent->header, header,
	       ctx->number == STUB_REPLY ? sizeof(struct p4_wire_response)
					 : sizeof(struct p4_wire_request));
	*req = NULL;
	return !stub.slow_sends;
}
