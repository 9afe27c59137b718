/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * snapshot.c - reading the shared tables into JSON. An index that is read from an entry is checked
 * before use: the entry may be changing hands.
 */
#define _GNU_SOURCE 1
#include "snapshot.h"

#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "fabric/actors.h"
#include "fabric/address.h"
#include "fabric/proc.h"
#include "fabric/table.h"
#include "fabric/unpolled.h"
#include "fabric/xrc_life.h"
#include "fabrics.h"
#include "render.h"

#define NAME_OF(names, i) ((size_t)(i) < sizeof(names) / sizeof(names[0]) ? names[i] : NULL)

const char *const shca_snapshot_keys[SHCA_KINDS] = {
	[SHCA_QP] = "qps", [SHCA_SRQ] = "srqs",   [SHCA_CQ] = "cqs",
	[SHCA_MR] = "mrs", [SHCA_XRCD] = "xrcds", [SHCA_MW] = "mws",
};

static void set_int(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void set_name(json_t *o, const char *key, const char *name)
{
	json_object_set_new(o, key, name ? json_string(name) : json_null());
}

/* Adds pid and comm of the process in a slot; null if there is no such slot. */
static void set_process(json_t *o, const struct shca_fabric *fabric, unsigned proc)
{
	bool valid = proc < SHCA_MAX_PROCS;
	const struct shca_proc *record = valid ? &fabric->hdr->procs[proc] : NULL;

	json_object_set_new(o, "pid",
			    valid ? json_integer(atomic_load(&record->pid)) : json_null());
	json_object_set_new(o, "comm", valid ? shca_json_text(record->comm) : json_null());
}

/* Adds the number of the live object at an index, under key; null if there is none. */
static void set_number(json_t *o, const char *key, const struct shca_fabric *fabric,
		       const struct shca_hca *hca, enum shca_kind kind, uint32_t idx)
{
	const struct shca_table *table = &hca->tables[kind];
	const _Atomic uint64_t *word;
	uint64_t w = 0;

	if (idx < atomic_load(&table->high)) {
		word = shca_table_entry(fabric, table, idx);
		w = atomic_load(word);
	}
	if (shca_word_state(w) == SHCA_LIVE)
		set_int(o, key, shca_word_number(w));
	else
		json_object_set_new(o, key, json_null());
}

static void set_openers(json_t *o, const struct shca_fabric *fabric,
			const _Atomic uint64_t *openers)
{
	json_t *pids = json_array();
	uint64_t n = 0;

	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++) {
		if (!shca_opened_by(openers, i))
			continue;
		json_array_append_new(pids, json_integer(atomic_load(&fabric->hdr->procs[i].pid)));
		n++;
	}
	set_int(o, "openers", n);
	json_object_set_new(o, "opener_pids", pids);
}

/* Adds the numbers of posted receives that no message has claimed, of claimed receives, and of
 * those that the queue takes at most. The first two come from counters that are read at different
 * times. */
static void set_queue(json_t *o, const struct shca_rq *rq)
{
	uint64_t head = atomic_load(&rq->head), tail = atomic_load(&rq->tail);

	set_int(o, "posted", tail > head ? tail - head : 0);
	set_int(o, "claimed", head);
	set_int(o, "max_wr", rq->max_wr);
}

/* Returns the number of processes that are woken when a receive is posted here. Their sends wait,
 * or did. */
static unsigned waiters(const struct shca_rq *rq)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SHCA_MAX_PROCS / 64; i++)
		n += (unsigned)__builtin_popcountll(atomic_load(&rq->rnr_waiters[i]));
	return n;
}

static void add_qp(json_t *o, const struct shca_fabric *fabric, const struct shca_hca *hca,
		   const void *entry)
{
	static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
	const struct shca_qp_entry *qp = entry;
	uint32_t state = atomic_load(&qp->state), srq = qp->srq;
	bool connected = qp->type != IBV_QPT_UD && state >= IBV_QPS_RTR && state <= IBV_QPS_SQE;
	const char *type = NULL;

	switch (qp->type) {
	case IBV_QPT_RC:
		type = "RC";
		break;
	case IBV_QPT_UC:
		type = "UC";
		break;
	case IBV_QPT_UD:
		type = "UD";
		break;
	case IBV_QPT_XRC_SEND:
		type = "XRC_SEND";
		break;
	case IBV_QPT_XRC_RECV:
		type = "XRC_RECV";
		break;
	}
	set_name(o, "type", type);
	set_name(o, "state", NAME_OF(states, state));
	json_object_set_new(o, "peer", connected ? json_integer(qp->dest_qpn) : json_null());
	json_object_set_new(o, "peer_lid",
			    connected && qp->dest_hca < fabric->hdr->nhcas &&
					    !shca_is_ethernet(fabric->hdr)
				    ? json_integer(fabric->hdr->hcas[qp->dest_hca].lid)
				    : json_null());
	if (qp->type != IBV_QPT_XRC_RECV)
		set_number(o, "send_cq", fabric, hca, SHCA_CQ, qp->send_cq);
	if (qp->type != IBV_QPT_XRC_RECV && qp->type != IBV_QPT_XRC_SEND) {
		set_number(o, "recv_cq", fabric, hca, SHCA_CQ, qp->recv_cq);
		if (srq)
			set_number(o, "srq", fabric, hca, SHCA_SRQ, srq - 1);
		else
			set_queue(o, &qp->rq);
	}
	if (qp->type == IBV_QPT_XRC_RECV) {
		set_number(o, "xrcd", fabric, hca, SHCA_XRCD, qp->xrcd);
		set_openers(o, fabric, qp->openers);
	}
}

static void add_srq(json_t *o, const struct shca_fabric *fabric, const struct shca_hca *hca,
		    const void *entry)
{
	const struct shca_srq_entry *srq = entry;
	bool xrc = srq->type == IBV_SRQT_XRC;

	set_name(o, "type", xrc ? "XRC" : "basic");
	set_name(o, "state", atomic_load(&srq->error) ? "error" : "ok");
	set_int(o, "pd", srq->pdn);
	set_queue(o, &srq->rq);
	set_int(o, "limit", atomic_load(&srq->rq.limit));
	set_int(o, "rnr_waiters", waiters(&srq->rq));
	if (xrc) {
		set_number(o, "xrcd", fabric, hca, SHCA_XRCD, srq->xrcd);
		set_number(o, "cq", fabric, hca, SHCA_CQ, srq->cq);
	}
}

static void add_cq(json_t *o, const struct shca_fabric *fabric, const struct shca_hca *hca,
		   const void *entry)
{
	static const char *const arms[] = {"no", "solicited", "any", "firing", "held"};
	const struct shca_cq_entry *cq = entry;

	(void)hca;
	set_name(o, "state", atomic_load(&cq->overrun) ? "overrun" : "ok");
	set_int(o, "unpolled", shca_unpolled_count(fabric, cq));
	set_int(o, "polled", atomic_load(&cq->polled));
	set_int(o, "limit", atomic_load(&cq->limit));
	set_name(o, "armed", NAME_OF(arms, atomic_load(&cq->arm) & 0xff));
	set_int(o, "events", atomic_load(&cq->events));
}

/* Adds the names of access flags; `none` if none is set. */
static void set_access(json_t *o, uint32_t access, const char *none)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} flags[] = {
		{IBV_ACCESS_LOCAL_WRITE, "local_write"}, {IBV_ACCESS_REMOTE_WRITE, "remote_write"},
		{IBV_ACCESS_REMOTE_READ, "remote_read"}, {IBV_ACCESS_REMOTE_ATOMIC, "atomic"},
		{IBV_ACCESS_MW_BIND, "mw_bind"},         {IBV_ACCESS_ZERO_BASED, "zero_based"},
		{IBV_ACCESS_ON_DEMAND, "odp"},           {IBV_ACCESS_RELAXED_ORDERING, "relaxed"},
	};
	char text[128] = "";

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (access & flags[i].bit)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				 *text ? "," : "", flags[i].name);
	}
	set_name(o, "access", *text ? text : none);
}

static void add_mw(json_t *o, const struct shca_fabric *fabric, const struct shca_hca *hca,
		   const void *entry)
{
	const struct shca_mw_entry *mw = entry;
	uint32_t key = (uint32_t)atomic_load(&mw->binding), qpn = atomic_load(&mw->qpn);

	(void)fabric;
	(void)hca;
	set_int(o, "type", mw->type);
	set_int(o, "pd", mw->pdn);
	json_object_set_new(o, "key", key ? json_integer(key) : json_null());
	if (!key)
		return;
	set_int(o, "mr", atomic_load(&mw->region));
	if (qpn)
		set_int(o, "qpn", qpn);
	set_int(o, "iova", atomic_load(&mw->iova));
	set_int(o, "length", atomic_load(&mw->length));
	set_access(o, atomic_load(&mw->access), "none");
}

static void add_mr(json_t *o, const struct shca_fabric *fabric, const struct shca_hca *hca,
		   const void *entry)
{
	const struct shca_mr_entry *mr = entry;

	(void)fabric;
	(void)hca;
	set_name(o, "type",
		 mr->flags & SHCA_MR_NULL       ? "null"
		 : mr->flags & SHCA_MR_IMPLICIT ? "implicit"
		 : mr->flags & SHCA_MR_DEVICE   ? "device"
						: "memory");
	set_int(o, "pd", mr->pdn);
	set_int(o, "iova", mr->iova);
	json_object_set_new(o, "length",
			    mr->flags & (SHCA_MR_NULL | SHCA_MR_IMPLICIT)
				    ? json_null()
				    : json_integer((json_int_t)mr->length));
	set_access(o, mr->access, "local_read");
}

static void add_xrcd(json_t *o, const struct shca_fabric *fabric, const struct shca_hca *hca,
		     const void *entry)
{
	const struct shca_xrcd_entry *xrcd = entry;
	uint64_t dev = xrcd->dev;
	char inode[64];

	(void)hca;
	if (dev || xrcd->ino)
		snprintf(inode, sizeof(inode), "%u:%u/%llu", major(dev), minor(dev),
			 (unsigned long long)xrcd->ino);
	else
		strcpy(inode, "private");
	set_name(o, "inode", inode);
	set_openers(o, fabric, xrcd->openers);
}

static json_t *one_object(const struct shca_fabric *fabric, const struct shca_hca *hca,
			  enum shca_kind kind, uint32_t idx)
{
	static void (*const add[SHCA_KINDS])(json_t *, const struct shca_fabric *,
					     const struct shca_hca *, const void *) = {
		[SHCA_QP] = add_qp, [SHCA_SRQ] = add_srq,   [SHCA_CQ] = add_cq,
		[SHCA_MR] = add_mr, [SHCA_XRCD] = add_xrcd, [SHCA_MW] = add_mw,
	};
	const void *entry = shca_table_entry(fabric, &hca->tables[kind], idx);
	const _Atomic uint64_t *word = entry;
	uint64_t w = atomic_load_explicit(word, memory_order_acquire);
	json_t *o;

	if (shca_word_state(w) != SHCA_LIVE)
		return NULL;
	o = json_object();
	set_int(o, "number", shca_word_number(w));
	set_process(o, fabric, shca_word_owner(w));
	add[kind](o, fabric, hca, entry);
	/* Everything that was read above belongs to one object if the state word still is the
	 * same; its owner may have changed. */
	w ^= atomic_load(word);
	if (shca_word_number(w) || shca_word_state(w)) {
		json_decref(o);
		return NULL;
	}
	return o;
}

json_t *shca_snapshot_objects(const struct shca_fabric *fabric, const struct shca_hca *hca,
			      enum shca_kind kind)
{
	uint32_t high = atomic_load_explicit(&hca->tables[kind].high, memory_order_acquire);
	json_t *list = json_array();

	for (uint32_t i = 0; i < high; i++) {
		json_t *o = one_object(fabric, hca, kind, i);

		if (o)
			json_array_append_new(list, o);
	}
	return list;
}

json_t *shca_snapshot_hca(const struct shca_hca *hca)
{
	json_t *o = json_object();

	json_object_set_new(o, "name", shca_json_text(hca->name));
	set_int(o, "node", hca->node);
	set_int(o, "device", hca->device);
	set_int(o, "lid", hca->lid);
	set_int(o, "guid", hca->guid);
	return o;
}

json_t *shca_snapshot_procs(const struct shca_fabric *fabric)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++) {
		const struct shca_proc *proc = &fabric->hdr->procs[i];
		json_t *o;

		if (!shca_proc_alive(fabric, i))
			continue;
		o = json_object();
		set_int(o, "slot", i);
		set_process(o, fabric, i);
		set_int(o, "node", proc->node);
		set_int(o, "pinned", atomic_load(&proc->pinned));
		set_int(o, "arena", atomic_load(&proc->arena_used));
		json_array_append_new(list, o);
	}
	return list;
}

static void set_times(json_t *o, const struct shca_clock *clock, uint32_t i)
{
	uint64_t due = atomic_load(&clock->due[i]), time = atomic_load(&clock->actors[i].clock);

	set_int(o, "clock", time > clock->zero ? time - clock->zero : 0);
	json_object_set_new(
		o, "due",
		due == SHCA_NEVER
			? json_null()
			: json_integer((json_int_t)(due > clock->zero ? due - clock->zero : 0)));
}

json_t *shca_snapshot_actors(const struct shca_fabric *fabric)
{
	const struct shca_clock *clock = shca_fabric_clock(fabric);
	uint32_t high = clock ? atomic_load(&clock->high) : 0;
	json_t *list = json_array();

	for (uint32_t i = 0; i < high; i++) {
		const struct shca_actor *actor = &clock->actors[i];
		uint32_t state = atomic_load(&actor->state);
		json_t *o;

		if (state == SHCA_ACTOR_FREE || state >= SHCA_ACTOR_STATES)
			continue;
		o = json_object();
		set_process(o, fabric, actor->proc);
		json_object_set_new(o, "tid",
				    atomic_load(&actor->tid)
					    ? json_integer(atomic_load(&actor->tid))
					    : json_null());
		set_name(o, "state", shca_actor_state_names[state]);
		set_name(o, "turn", atomic_load(&clock->holder) == i + 1 ? "yes" : NULL);
		set_name(o, "in", NAME_OF(shca_call_names, atomic_load(&actor->where)));
		set_times(o, clock, i);
		set_int(o, "cpu", atomic_load(&actor->cpu));
		set_int(o, "turns", atomic_load(&actor->turns));
		set_int(o, "parked", atomic_load(&actor->parked));
		set_int(o, "outs", atomic_load(&actor->outs));
		json_array_append_new(list, o);
	}
	return list;
}

json_t *shca_snapshot_clock(const struct shca_fabric *fabric)
{
	const struct shca_clock *clock = shca_fabric_clock(fabric);
	json_t *o = json_object();
	char hash[20];

	set_int(o, "time", atomic_load(&clock->now) - clock->zero);
	set_int(o, "syncs", atomic_load(&clock->syncs));
	set_int(o, "turns", atomic_load(&clock->turns));
	set_int(o, "own", atomic_load(&clock->own));
	set_int(o, "world", atomic_load(&clock->waits_for_world));
	set_int(o, "all", atomic_load(&clock->waits_for_all));
	set_int(o, "unquiet", atomic_load(&clock->unquiet));
	set_int(o, "paced", atomic_load(&clock->paced));
	set_int(o, "taken", atomic_load(&clock->taken));
	set_int(o, "tsc", clock->tsc_per_s);
	set_int(o, "sees_writes", clock->sees_writes);
	snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)atomic_load(&clock->hash));
	json_object_set_new(o, "hash", json_string(hash));
	return o;
}

json_t *shca_snapshot_fabric(const struct shca_fabric *fabric)
{
	struct timespec now;
	json_t *o = json_object();
	double age;

	clock_gettime(CLOCK_REALTIME, &now);
	age = (double)now.tv_sec + (double)now.tv_nsec / 1e9 - (double)fabric->hdr->created / 1e9;
	set_name(o, "name", shca_fabrics_name(fabric->hdr->dir));
	set_name(o, "dir", fabric->hdr->dir);
	set_int(o, "pid", (uint64_t)atomic_load(&fabric->hdr->owner_pid));
	set_int(o, "nodes", fabric->hdr->nodes);
	set_int(o, "devices", fabric->hdr->devices);
	set_int(o, "processes", shca_fabrics_processes(fabric));
	json_object_set_new(o, "age", json_real(age > 0 ? age : 0));
	json_object_set_new(o, "command", shca_json_text(fabric->hdr->command));
	return o;
}
