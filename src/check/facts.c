/* SPDX-License-Identifier: BSD-3-Clause */
/* The requirements are those of libtupleq (src/transport/net/adapter/device.c and choose.c), with
 * its default parameters. */
#include "facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "net/adapter/verbs.h"

/* The least that libtupleq starts with: an SRQ for each length of control message. */
#define SRQ_MIN     2
#define SRQ_WR_MIN  16
#define QP_WR_MIN   16
#define MESSAGE_MIN 4096u

/* Tuple queues of a process by default, and the inline data that a QP is asked for. */
#define SRQ_WANTED    1024
#define INLINE_WANTED 256u

/* Locked memory at which nothing is short by default. */
#define LOCKED_WANTED ((size_t)64 << 20)
#define LOCKED_LEAST  ((size_t)4096)

struct facts {
	struct report *report;
	struct port *port;
	struct ibv_pd *pd;
	bool works; /* no fact so far is REPORT_BAD */
};

/* Reports a fact, whose findings are formatted. */
static __attribute__((format(printf, 6, 7))) void say(struct facts *facts,
						      enum report_status status, const char *name,
						      const char *why, const char *advice,
						      const char *found, ...)
{
	char text[REPORT_TEXT];
	va_list args;

	va_start(args, found);
	vsnprintf(text, sizeof(text), found, args);
	va_end(args);
	report_fact(facts->report, status, name, text, why, advice);
	if (status == REPORT_BAD)
		facts->works = false;
}

static void fact_state(struct facts *facts)
{
	const struct ibv_port_attr *port = &facts->port->port;
	bool active = port->state == IBV_PORT_ACTIVE;

	say(facts, active ? REPORT_OK : REPORT_BAD, "port state", "the port is not active",
	    port->link_layer == IBV_LINK_LAYER_ETHERNET
		    ? "check the cable, and bring its network interface up (ip link)"
		    : "check the cable and the subnet manager; ibv_devinfo shows the state",
	    "%s, %s", ibv_port_state_str(port->state),
	    port->link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE" : "InfiniBand");
}

static void fact_address(struct facts *facts)
{
	const struct port *port = facts->port;

	if (port->port.link_layer != IBV_LINK_LAYER_ETHERNET && port->gid_index < 0) {
		say(facts, port->port.lid ? REPORT_OK : REPORT_BAD, "address",
		    "the port has no LID", "start a subnet manager (opensm)", "LID %u",
		    port->port.lid);
		return;
	}
	say(facts, port->gid_index >= 0 ? REPORT_OK : REPORT_BAD, "address",
	    "the port has no RoCE v2 GID", "give its network interface an IP address",
	    port->gid_index >= 0 ? "GID index %d" : "no RoCE v2 GID", port->gid_index);
}

/* A port with limited membership reaches neither itself nor others of that kind. libtupleq only
 * warns, because it may have full members as peers; but no program has those alone. */
static void fact_partition(struct facts *facts)
{
	const struct port *port = facts->port;

	if (port->pkey_index < 0)
		say(facts, REPORT_BAD, "partition", "the port has no partition key",
		    "add it to a partition at the subnet manager", "no key");
	else
		say(facts, port->pkey & PORT_PKEY_FULL ? REPORT_OK : REPORT_BAD, "partition",
		    "the port is a limited member of its partition, so it reaches full members "
		    "only, and not itself",
		    "make it a full member at the subnet manager", "0x%04x", port->pkey);
}

static void fact_message(struct facts *facts)
{
	const struct ibv_port_attr *port = &facts->port->port;

	say(facts, port->max_msg_sz >= MESSAGE_MIN ? REPORT_OK : REPORT_BAD, "messages",
	    "its messages are too short: 4096 bytes are needed", "use another adapter",
	    "up to %" PRIu32 " bytes, MTU %d", port->max_msg_sz, 128 << port->active_mtu);
}

static void fact_queues(struct facts *facts)
{
	const struct ibv_device_attr *attr = &facts->port->attr;
	enum report_status status = REPORT_OK;

	if (attr->max_srq < SRQ_MIN || attr->max_srq_wr < SRQ_WR_MIN || attr->max_srq_sge < 1)
		status = REPORT_BAD;
	else if (attr->max_srq < SRQ_WANTED || attr->max_srq_sge < 2)
		status = REPORT_LACKS;
	say(facts, status, "SRQs",
	    status == REPORT_BAD ? "it has too few shared receive queues: 2 of 16 entries are "
				   "needed"
	    : attr->max_srq_sge < 2
		    ? "receives of one piece have no room for what is too long, so all messages "
		      "are "
		      "copied"
		    : "a process uses up to 1024 for tuples, and the messages of the others are "
		      "copied",
	    "use another adapter, or raise its limit in the driver or hypervisor",
	    "number %d, depth %d, pieces %d", attr->max_srq, attr->max_srq_wr, attr->max_srq_sge);
	say(facts, attr->max_qp_wr >= QP_WR_MIN && attr->max_sge >= 1 ? REPORT_OK : REPORT_BAD,
	    "QPs", "its queue pairs are too short: 16 entries are needed", "use another adapter",
	    "number %d, depth %d, pieces %d", attr->max_qp, attr->max_qp_wr, attr->max_sge);
}

static void fact_xrc(struct facts *facts)
{
	struct ibv_context *verbs = facts->port->verbs;
	const char *verb;
	char why[REPORT_TEXT];
	int error;

	if (!(facts->port->attr.device_cap_flags & IBV_DEVICE_XRC)) {
		say(facts, REPORT_BAD, "XRC", "it has no XRC (extended reliable connections)",
		    "use an adapter of the drivers mlx4, mlx5 or hns, which have XRC", "none");
		return;
	}
	verb = tq_missing_of_xrc(verbs, &error);
	if (!verb) {
		say(facts, REPORT_OK, "XRC", "", "", "domain, target QP and ibv_open_qp()");
		return;
	}
	snprintf(why, sizeof(why), "it has XRC, but %s fails (%s)", verb, strerror(error));
	say(facts, REPORT_BAD, "XRC", why, port_advice(error), "%s: %s", verb, strerror(error));
}

/* Finds out how much an initiator QP takes inline, which is known only by making one. */
static void fact_inline(struct facts *facts)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp *qp = NULL;
	struct ibv_cq *cq = ibv_create_cq(facts->port->verbs, 1, NULL, NULL, 0);
	char why[REPORT_TEXT];
	uint32_t want = 0;
	int error = errno;

	for (want = INLINE_WANTED; cq && !qp; want /= 2) {
		attr = (struct ibv_qp_init_attr_ex){
			.send_cq = cq,
			.cap = {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = want},
			.qp_type = IBV_QPT_XRC_SEND,
			.comp_mask = IBV_QP_INIT_ATTR_PD,
			.pd = facts->pd,
		};
		qp = ibv_create_qp_ex(facts->port->verbs, &attr);
		error = errno;
		if (qp || !want)
			break;
	}
	if (qp) {
		say(facts, want == INLINE_WANTED ? REPORT_OK : REPORT_LACKS, "inline data",
		    "short messages are copied into registered memory",
		    "nothing need be done: this costs little", "%" PRIu32 " bytes of %u", want,
		    INLINE_WANTED);
		ibv_destroy_qp(qp);
	} else {
		snprintf(why, sizeof(why), "no %s can be made (%s)",
			 cq ? "XRC initiator queue pair" : "completion queue", strerror(error));
		say(facts, REPORT_BAD, "inline data", why, port_advice(error), "no queue pair: %s",
		    strerror(error));
	}
	if (cq)
		ibv_destroy_cq(cq);
}

static void fact_null_mr(struct facts *facts)
{
	struct ibv_mr *mr = ibv_alloc_null_mr(facts->pd);

	say(facts, mr ? REPORT_OK : REPORT_LACKS, "null MR",
	    "what is too long for its buffer goes into memory that counts as locked",
	    "raise the limit of locked memory if messages are copied", "%s",
	    mr ? "yes" : strerror(errno));
	if (mr)
		ibv_dereg_mr(mr);
}

static void fact_odp(struct facts *facts)
{
	const uint32_t needed = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE |
				IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV;
	struct ibv_device_attr_ex attr;
	bool has = !ibv_query_device_ex(facts->port->verbs, NULL, &attr) &&
		   (attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT) &&
		   (attr.xrc_odp_caps & needed) == needed;

	say(facts, has ? REPORT_OK : REPORT_LACKS, "ODP", "buffers are registered one by one",
	    "nothing need be done: registrations are kept", "%s",
	    has ? "implicit, on XRC" : "not implicit on XRC");
}

static void fact_atomics(struct facts *facts)
{
	enum ibv_atomic_cap cap = facts->port->attr.atomic_cap;

	say(facts, cap == IBV_ATOMIC_NONE ? REPORT_LACKS : REPORT_OK, "atomics",
	    "one-sided sums of MPI take part of the program's time",
	    "nothing need be done unless the program needs these", "%s",
	    cap == IBV_ATOMIC_NONE  ? "none"
	    : cap == IBV_ATOMIC_HCA ? "among adapters of this kind"
				    : "with the processor's");
}

/* Registers as much as TupleQ likes to have, or else as much as possible. Returns the bytes. */
static size_t lockable(struct ibv_pd *pd, int *error)
{
	struct ibv_mr *mr = NULL;
	size_t bytes;
	void *memory;

	*error = 0;
	for (bytes = LOCKED_WANTED; bytes >= LOCKED_LEAST; bytes /= 2) {
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
		if (memory == MAP_FAILED) {
			*error = errno;
			continue;
		}
		mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
		if (mr)
			ibv_dereg_mr(mr);
		else
			*error = errno;
		munmap(memory, bytes);
		if (mr)
			return bytes;
	}
	return 0;
}

static void fact_locked(struct facts *facts)
{
	const char *advice = "raise the limit of locked memory (ulimit -l; memlock in "
			     "/etc/security/limits.conf; LimitMEMLOCK of the batch system's "
			     "service), or fewer messages are matched by the adapter";
	char limited[64] = "no limit", why[REPORT_TEXT];
	struct rlimit limit;
	int error;
	size_t bytes = lockable(facts->pd, &error);

	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
		snprintf(limited, sizeof(limited), "a limit of %llu KiB",
			 (unsigned long long)limit.rlim_cur >> 10);
	if (!bytes) {
		snprintf(why, sizeof(why), "no memory can be registered (%s)", strerror(error));
		say(facts, REPORT_BAD, "locked memory", why, port_advice(error), "none, of %s",
		    limited);
		return;
	}
	snprintf(why, sizeof(why), "no more than %zu KiB could be registered at once", bytes >> 10);
	say(facts, bytes == LOCKED_WANTED ? REPORT_OK : REPORT_LACKS, "locked memory", why, advice,
	    "%zu KiB at once, %s", bytes >> 10, limited);
}

void facts_report(struct report *report, struct port *port)
{
	struct facts facts = {.report = report, .port = port, .works = true};
	char why[REPORT_TEXT];
	int error;

	fact_state(&facts);
	fact_address(&facts);
	fact_partition(&facts);
	fact_message(&facts);
	fact_queues(&facts);
	fact_xrc(&facts);
	fact_odp(&facts);
	fact_atomics(&facts);
	if (!(port->attr.device_cap_flags & IBV_DEVICE_XRC))
		return;
	facts.pd = ibv_alloc_pd(port->verbs);
	if (!facts.pd) {
		error = errno;
		snprintf(why, sizeof(why), "no protection domain can be made (%s)",
			 strerror(error));
		say(&facts, REPORT_BAD, "memory", why, port_advice(error), "ibv_alloc_pd(): %s",
		    strerror(error));
		return;
	}
	fact_inline(&facts);
	fact_null_mr(&facts);
	fact_locked(&facts);
	ibv_dealloc_pd(facts.pd);
}
