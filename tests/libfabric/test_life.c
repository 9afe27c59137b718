/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Discovery and life: fi_getinfo() in its forms, what is refused, the order of closing, several
 * endpoints and domains, names, and a fork. Each test has processes of its own, so that each loads
 * libfabric anew.
 *
 * test_life NODES, under "softhca run --nodes NODES"
 */
#include "member.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NPROCS   2
#define RDM_CAPS (FI_MSG | FI_TAGGED)
#define MR_MODE  (FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR)

/* Values of libfabric 1, whose names (with FI_) libfabric 2 warns of. */
#define MR_UNSPEC    0
#define MR_BASIC     (1 << 0)
#define MR_SCALABLE  (1 << 1)
#define ORDER_STRICT 0x1ffu

static unsigned nodes[NPROCS];

static struct fi_info *new_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	t_holds(hints);
	hints->fabric_attr->prov_name = strdup("tupleq");
	return hints;
}

/* Asks, and frees the hints. */
static int ask(uint32_t version, const char *node, const char *service, uint64_t flags,
	       struct fi_info *hints, struct fi_info **info)
{
	int rc = fi_getinfo(version, node, service, flags, hints, info);

	fi_freeinfo(hints);
	return rc;
}

/* Runs a test in one process, which may set the environment. */
static void run_one(procs_fn fn)
{
	procs_run(1, NULL, fn, NULL);
}

/* ---- fi_getinfo() ---- */

/* Every version of the interface gets the same, in its own terms. */
static void versions_part(unsigned me, void *arg)
{
	static const struct {
		unsigned major, minor;
		int asked, given;
	} cases[] = {
		{1, 0, MR_UNSPEC, MR_BASIC}, {1, 4, MR_BASIC, MR_BASIC},
		{1, 5, MR_BASIC, MR_BASIC},  {1, 5, MR_MODE | FI_MR_LOCAL, MR_MODE},
		{1, 17, MR_MODE, MR_MODE},
	};

	(void)me;
	(void)arg;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fi_info *hints = new_hints(), *info;

		hints->domain_attr->mr_mode = cases[i].asked;
		hints->caps = RDM_CAPS | FI_RMA;
		t_ok(ask(FI_VERSION(cases[i].major, cases[i].minor), NULL, NULL, 0, hints, &info));
		t_eq(info->domain_attr->mr_mode, cases[i].given);
		t_eq(info->ep_attr->type, FI_EP_RDM);
		t_eq(info->caps & (RDM_CAPS | FI_SEND | FI_RECV), RDM_CAPS | FI_SEND | FI_RECV);
		t_eq(info->caps & FI_ATOMIC, 0);
		t_eq(info->caps & FI_SOURCE, 0);
		t_true(info->nic && info->nic->link_attr->state == FI_LINK_UP, "no port is named");
		t_true(info->src_addr && !info->dest_addr, "the addresses are wrong");
		fi_freeinfo(info);
	}
}

static void versions(void **state)
{
	(void)state;
	run_one(versions_part);
}

typedef void change_fn(struct fi_info *hints);

static void want_msg_endpoint(struct fi_info *hints)
{
	hints->ep_attr->type = FI_EP_MSG;
}

static void want_multicast(struct fi_info *hints)
{
	hints->caps = FI_MSG | FI_MULTICAST;
}

static void want_long_inject(struct fi_info *hints)
{
	hints->tx_attr->inject_size = 1 << 20;
}

static void want_sockaddr(struct fi_info *hints)
{
	hints->addr_format = FI_SOCKADDR_IN;
}

static void want_strict_order(struct fi_info *hints)
{
	hints->rx_attr->comp_order = ORDER_STRICT;
}

static void want_no_registration(struct fi_info *hints)
{
	hints->caps = FI_RMA;
	hints->domain_attr->mr_mode = MR_SCALABLE;
}

static void want_other_domain(struct fi_info *hints)
{
	hints->domain_attr->name = strdup("mlx99_0:1");
}

static void want_contexts(struct fi_info *hints)
{
	hints->ep_attr->rx_ctx_cnt = 2;
}

static void want_long_data(struct fi_info *hints)
{
	hints->domain_attr->cq_data_size = 9;
}

static void want_wrong_dest(struct fi_info *hints)
{
	hints->dest_addr = calloc(1, 16);
	hints->dest_addrlen = 16;
}

static void want_wrong_text(struct fi_info *hints)
{
	hints->addr_format = FI_ADDR_STR;
	hints->dest_addr = strdup("fi_tupleq://1:2");
	hints->dest_addrlen = sizeof("fi_tupleq://1:2");
}

static void want_triggered(struct fi_info *hints)
{
	hints->caps = FI_MSG | FI_TRIGGER;
}

static void refused_part(unsigned me, void *arg)
{
	static change_fn *const changes[] = {
		want_msg_endpoint, want_multicast,       want_long_inject,  want_sockaddr,
		want_strict_order, want_no_registration, want_other_domain, want_contexts,
		want_long_data,    want_wrong_dest,      want_wrong_text,   want_triggered,
	};
	struct fi_info *info;

	(void)me;
	(void)arg;
	for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct fi_info *hints = new_hints();
		int rc;

		changes[i](hints);
		rc = ask(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
		t_true(rc == -FI_ENODATA, "case %u: fi_getinfo() returned %d", i, rc);
	}
	t_eq(ask(FI_VERSION(1, 17), "no.such.host.invalid", "1", FI_NUMERICHOST, new_hints(),
		 &info),
	     -FI_ENODATA);
}

static void refused(void **state)
{
	(void)state;
	run_one(refused_part);
}

/* The log says that there is no device; nothing else happens. */
static void no_device_part(unsigned me, void *arg)
{
	struct fi_info *info;

	(void)me;
	(void)arg;
	setenv("FI_TUPLEQ_IF_EXCLUDE", "softhca0", 1);
	t_eq(ask(FI_VERSION(1, 17), NULL, NULL, 0, new_hints(), &info), -FI_ENODATA);
}

static void bad_parameter_part(unsigned me, void *arg)
{
	struct fi_info *info;

	(void)me;
	(void)arg;
	setenv("FI_TUPLEQ_EAGER_LIMIT", "much", 1);
	t_eq(ask(FI_VERSION(1, 17), NULL, NULL, 0, new_hints(), &info), -FI_ENODATA);
}

static void no_device(void **state)
{
	(void)state;
	run_one(no_device_part);
	run_one(bad_parameter_part);
}

/* ---- objects ---- */

static void closing_part(unsigned me, void *arg)
{
	struct member member;
	struct fid_domain *second;
	struct fid_ep *more[8], *scalable;
	pid_t child;
	int status;

	(void)arg;
	member_open_with(&member, me, 1, RDM_CAPS, 0);
	/* Objects that are in use aren't closed. */
	t_eq(fi_close(&member.fabric->fid), -FI_EBUSY);
	t_eq(fi_close(&member.domain->fid), -FI_EBUSY);
	t_eq(fi_close(&member.av->fid), -FI_EBUSY);
	t_eq(fi_close(&member.rx->fid), -FI_EBUSY);
	t_eq(fi_close(&member.writes->fid), -FI_EBUSY);
	/* An endpoint needs a vector and queues; there are no scalable endpoints. */
	t_ok(fi_endpoint(member.domain, member.info, &more[0], NULL));
	t_eq(fi_enable(more[0]), -FI_ENOAV);
	t_ok(fi_ep_bind(more[0], &member.av->fid, 0));
	t_eq(fi_ep_bind(more[0], &member.av->fid, 0), -FI_EINVAL);
	t_eq(fi_enable(more[0]), -FI_ENOCQ);
	t_eq(fi_recv(more[0], NULL, 0, NULL, FI_ADDR_UNSPEC, NULL), -FI_EOPBADSTATE);
	t_eq(fi_ep_bind(more[0], &member.tx->fid, 0), -FI_EINVAL);
	t_eq(fi_scalable_ep(member.domain, member.info, &scalable, NULL), -FI_ENOSYS);
	for (unsigned i = 1; i < 8; i++)
		t_ok(fi_endpoint(member.domain, member.info, &more[i], NULL));
	for (unsigned i = 0; i < 8; i++)
		t_ok(fi_close(&more[(i * 3) % 8]->fid));
	/* Two domains at a time. */
	t_ok(fi_domain(member.fabric, member.info, &second, NULL));
	t_ok(fi_close(&second->fid));
	/* A forked child has copies, which it may close or leave alone. */
	for (unsigned i = 0; i < 2; i++) {
		child = fork();
		t_holds(child >= 0);
		if (!child && i)
			member_close_alone(&member);
		if (!child)
			_exit(3);
		t_holds(waitpid(child, &status, 0) == child);
		t_true(WIFEXITED(status) && WEXITSTATUS(status) == 3, "the child ended with %#x",
		       status);
	}
	member_close(&member);
}

static void closing(void **state)
{
	(void)state;
	run_one(closing_part);
}

/* ---- names ---- */

static fi_addr_t insert(struct fid_av *av, uint32_t format, const void *addr)
{
	fi_addr_t index;

	t_eq(fi_av_insert(av, format == FI_ADDR_STR ? &addr : addr, 1, &index, 0, NULL), 1);
	return index;
}

/* A client knows a host and a service, and the server learns the client's address from it.
 * `arg`: the format of addresses. */
static void names_part(unsigned me, void *arg)
{
	const uint32_t *format = arg;
	const char *service = "47611";
	struct fi_info *hints = new_hints(), *info;
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {0};
	struct fi_cq_tagged_entry entry;
	struct fi_context context;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	char name[64] = "";
	size_t len = sizeof(name);
	fi_addr_t peer;
	ssize_t rc;

	hints->caps = FI_MSG;
	hints->addr_format = *format;
	t_ok(ask(FI_VERSION(1, 17), me ? "127.0.0.1" : NULL, service, me ? 0 : FI_SOURCE, hints,
		 &info));
	t_ok(fi_fabric(info->fabric_attr, &fabric, NULL));
	t_ok(fi_domain(fabric, info, &domain, NULL));
	t_ok(fi_av_open(domain, &av_attr, &av, NULL));
	t_ok(fi_cq_open(domain, &cq_attr, &cq, NULL));
	t_ok(fi_endpoint(domain, info, &ep, NULL));
	t_ok(fi_ep_bind(ep, &av->fid, 0));
	t_ok(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	t_ok(fi_enable(ep));
	if (me) {
		t_ok(fi_getname(&ep->fid, name, &len));
		t_eq(len, *format == FI_ADDR_STR ? strlen(name) + 1 : info->src_addrlen);
		peer = insert(av, *format, info->dest_addr);
		/* The server may not be there yet. */
		while ((rc = fi_inject(ep, name, sizeof(name), peer)) == -FI_EAGAIN)
			;
		t_eq(rc, 0);
	} else {
		t_ok((int)fi_recv(ep, name, sizeof(name), NULL, FI_ADDR_UNSPEC, &context));
		while (fi_cq_read(cq, &entry, 1) == -FI_EAGAIN)
			;
		t_eq(entry.len, sizeof(name));
		insert(av, *format, name);
	}
	procs_barrier();
	t_ok(fi_close(&ep->fid));
	t_ok(fi_close(&cq->fid));
	t_ok(fi_close(&av->fid));
	t_ok(fi_close(&domain->fid));
	t_ok(fi_close(&fabric->fid));
	fi_freeinfo(info);
}

static void names(void **state)
{
	uint32_t formats[] = {FI_FORMAT_UNSPEC, FI_ADDR_STR};

	(void)state;
	procs_run(NPROCS, nodes, names_part, &formats[0]);
	procs_run(NPROCS, nodes, names_part, &formats[1]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions), cmocka_unit_test(refused), cmocka_unit_test(no_device),
		cmocka_unit_test(closing),  cmocka_unit_test(names),
	};

	nodes[1] = argc > 1 && atoi(argv[1]) > 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
