/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "proto/common/msg.h"
#include "proto/common/objects.h"
#include "proto/common/policy.h"
#include "proto/common/tx_objects.h"
#include "proto/core.h"
#include "proto/contexts.h"
#include "proto/matching/recv.h"
#include "proto/sender/send.h"

struct unit unit;
const struct tq_net_limits unit_limits = {.max_inline = 64,
					  .control_data_max = 4096,
					  .max_direct = 65536,
					  .max_send = 65536,
					  .max_sge = 1,
					  .max_sge_rd = 1,
					  .max_srq_sge = 1,
					  .srq_depth = 16};

/* ---- a network that takes all messages ---- */

static void note(struct unit_handles *handles, uint32_t handle)
{
	if (handles->n == handles->room) {
		handles->room = handles->room ? 2 * handles->room : 1024;
		handles->of = realloc(handles->of, handles->room * sizeof(*handles->of));
		if (!handles->of)
			abort();
	}
	handles->of[handles->n++] = handle;
}

static void note_ask(const struct tq_msg_env *env)
{
	if (env->ask.v)
		note(&unit.asks, tq_get32(env->ask));
}

static void *eager_buf(struct tq_net *net, struct tq_link *to, uint32_t len)
{
	static uint64_t buf[32];

	(void)net, (void)to;
	return len <= sizeof(buf) && !unit.no_eager ? buf : NULL;
}

static int eager_send(struct tq_net *net, struct tq_link *to, void *buf, uint32_t len,
		      unsigned flags)
{
	(void)net, (void)to, (void)len, (void)flags;
	note_ask(&((const struct tq_msg_eager *)buf)->env);
	return 0;
}

static int control(struct tq_net *net, struct tq_link *to, const void *msg, uint32_t len,
		   unsigned flags)
{
	const struct tq_msg_hdr *hdr = msg;

	(void)net, (void)to, (void)len, (void)flags;
	if (hdr->type == TQ_MSG_RTS) {
		note_ask(&((const struct tq_msg_rts *)msg)->env);
		note(&unit.rts, tq_get32(((const struct tq_msg_rts *)msg)->send_req));
		unit.rts_flags = hdr->flags;
	} else if (hdr->type == TQ_MSG_SRQN) {
		note(&unit.offers, tq_get32(((const struct tq_msg_srqn *)msg)->rx_tuple));
	} else if (hdr->type == TQ_MSG_REFUSE) {
		unit.ask_after = tq_get32(((const struct tq_msg_refuse *)msg)->after);
	} else if (hdr->type == TQ_MSG_SWITCH) {
		unit.switches++;
	} else if (hdr->type == TQ_MSG_FIN) {
		unit.fins++;
	}
	return 0;
}

static struct tq_reg *reg(struct tq_net *net, void *addr, uint64_t len, bool write, void **cookie)
{
	static struct tq_reg memory;

	(void)net, (void)addr, (void)len, (void)write, (void)cookie;
	return unit.registers ? &memory : NULL;
}

static void unreg(struct tq_net *net, struct tq_reg *memory, void *cookie)
{
	(void)net, (void)memory, (void)cookie;
}

static bool copy_get(struct tq_net *net, uint64_t len, struct tq_sg *sg)
{
	(void)net, (void)len, (void)sg;
	return false;
}

static struct tq_lane *lane_get(struct tq_net *net, struct tq_link *to)
{
	(void)net, (void)to;
	return NULL;
}

static struct tq_srq *srq_get(struct tq_net *net, uint32_t *srqn)
{
	(void)net;
	*srqn = 7;
	unit.queues++;
	return (struct tq_srq *)&unit.queues;
}

static int srq_post(struct tq_net *net, struct tq_srq *srq, const struct tq_sg *sg, int nsg,
		    void *token)
{
	(void)net, (void)srq, (void)sg, (void)nsg;
	unit.posted = token;
	return 0;
}

static void srq_put(struct tq_net *net, struct tq_srq *srq, bool safe)
{
	(void)net, (void)srq, (void)safe;
	unit.queues--;
}

static void backpressure(struct tq_net *net, bool stop)
{
	(void)net;
	unit.backpressured = stop;
}

static void peer_fail(struct tq_net *net, struct tq_link *to, const char *why)
{
	(void)net, (void)to;
	unit.given_up = why;
}

static void remind(struct tq_net *net)
{
	(void)net;
}

static bool is_local(struct tq_net *net, struct tq_link *to)
{
	(void)net, (void)to;
	return false;
}

static const struct tq_net_ops network = {
	.is_local = is_local,
	.try_readable = is_local,
	.eager_buf = eager_buf,
	.eager_send = eager_send,
	.remind = remind,
	.control = control,
	.reg = reg,
	.unreg = unreg,
	.copy_get = copy_get,
	.lane_get = lane_get,
	.srq_get = srq_get,
	.srq_post = srq_post,
	.srq_put = srq_put,
	.backpressure = backpressure,
	.peer_fail = peer_fail,
};

/* ---- start and end ---- */

void unit_set(const char *name, const char *value)
{
	char why[100];

	if (tq_param_set(unit.params, name, value, why, sizeof(why)))
		abort();
	if (!unit.core.params)
		return;
	tq_settings_init(&unit.core);
	for (struct tq_ctx *ctx = unit.core.contexts; ctx; ctx = ctx->hh.next)
		tq_ctx_settings_init(ctx);
}

struct tq_ctx *unit_context(uint32_t id)
{
	struct tq_peer *const peers[] = {&unit.peer};
	struct tq_ctx *ctx;

	if (tq_core_ctx_add(&unit.core, id, peers, 1, 0, 0, &ctx))
		abort();
	return ctx;
}

void unit_start(const char *name, const char *value)
{
	unit = (struct unit){.params = tq_params_new()};
	if (!unit.params)
		abort();
	if (name)
		unit_set(name, value);
	tq_core_init(&unit.core, &network, NULL, &unit_limits, unit.params, &unit.stats);
	if (tq_core_peer_init(&unit.core, &unit.peer, NULL, NULL))
		abort();
	unit.ctx = unit_context(UNIT_CTX);
}

void unit_poll(void)
{
	struct tq_req *req, *next;

	tq_core_poll(&unit.core);
	for (req = tq_core_ended(&unit.core); req; req = next) {
		next = req->next;
		tq_core_release(req);
	}
}

bool unit_stop(void)
{
	const struct tq_stats *stats = &unit.stats;
	const struct tq_peer *peer = &unit.peer;

	tq_core_peer_fini(&unit.core, &unit.peer);
	unit_poll();
	tq_core_ctx_remove(unit.ctx);
	unit_poll();
	tq_core_destroy(&unit.core);
	tq_params_free(unit.params);
	free(unit.asks.of);
	free(unit.rts.of);
	free(unit.offers.of);
	if (unit.given_up)
		printf("# given up: %s\n", unit.given_up);
	return !unit.queues && !unit.given_up && !stats->sender_tuples && !stats->receiver_tuples &&
	       !stats->asked && !stats->unexpected_bytes && !stats->unexpected &&
	       !stats->early_messages && !stats->held_known && !stats->contexts && !stats->pairs &&
	       !stats->unexpected_tags && !peer->nasked && !peer->unexpected_rts &&
	       !peer->unexpected_bytes && !peer->orphan_rts && !peer->orphan_bytes && !peer->nheld;
}

bool unit_stop_excess(void)
{
	bool ok = unit.given_up && unit.stats.excesses == 1;

	unit.given_up = NULL;
	return unit_stop() && ok;
}

/* ---- messages ---- */

int unit_send(int32_t tag, uint64_t len)
{
	static char data[UNIT_LONG];
	const struct tq_buf buf = {.addr = data, .len = len};
	struct tq_req *req;

	return tq_core_send(unit.ctx, 0, tag, &buf, 0, NULL, &req);
}

int unit_recv(int rank, int32_t tag, struct tq_req **req)
{
	const struct tq_buf none = {0};
	struct tq_status status;

	return tq_core_recv(unit.ctx, rank, tag, &none, NULL, req, &status);
}

void unit_comes(const void *msg, size_t len)
{
	tq_core_on_control(&unit.core, &unit.peer, msg, (uint32_t)len, NULL);
}
