/* SPDX-License-Identifier: BSD-3-Clause */
/* member.c - see member.h. */
#include "member.h"

#include <stdlib.h>
#include <string.h>

enum { K_NAME, K_NAME_END = K_NAME + 1, K_ADDR, K_KEY };

#define CAPS (FI_MSG | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

static void open_objects(struct member *member, uint64_t caps, uint64_t cq_flags)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
	struct fi_cntr_attr cntr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av = {.type = FI_AV_TABLE};

	t_holds(hints);
	hints->caps = caps;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->size = 1024; /* tests reach this limit */
	hints->domain_attr->mr_mode = FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
	hints->fabric_attr->prov_name = strdup("tupleq");
	t_ok(fi_getinfo(MEMBER_VERSION, NULL, NULL, 0, hints, &member->info));
	fi_freeinfo(hints);
	t_ok(fi_fabric(member->info->fabric_attr, &member->fabric, NULL));
	t_ok(fi_domain(member->fabric, member->info, &member->domain, NULL));
	t_ok(fi_av_open(member->domain, &av, &member->av, NULL));
	t_ok(fi_cq_open(member->domain, &cq, &member->tx, NULL));
	t_ok(fi_cq_open(member->domain, &cq, &member->rx, NULL));
	t_ok(fi_cntr_open(member->domain, &cntr, &member->writes, NULL));
	t_ok(fi_cntr_open(member->domain, &cntr, &member->reads, NULL));
	t_ok(fi_cntr_open(member->domain, &cntr, &member->remote_writes, NULL));
	t_ok(fi_cntr_open(member->domain, &cntr, &member->remote_reads, NULL));
	t_ok(fi_cntr_open(member->domain, &cntr, &member->touched, NULL));
	t_ok(fi_endpoint(member->domain, member->info, &member->ep, NULL));
	t_ok(fi_ep_bind(member->ep, &member->av->fid, 0));
	t_ok(fi_ep_bind(member->ep, &member->tx->fid, FI_TRANSMIT | cq_flags));
	t_ok(fi_ep_bind(member->ep, &member->rx->fid, FI_RECV | cq_flags));
	t_ok(fi_ep_bind(member->ep, &member->writes->fid, FI_WRITE));
	t_ok(fi_ep_bind(member->ep, &member->reads->fid, FI_READ));
	t_ok(fi_ep_bind(member->ep, &member->remote_writes->fid, FI_REMOTE_WRITE));
	t_ok(fi_ep_bind(member->ep, &member->remote_reads->fid, FI_REMOTE_READ));
	t_ok(fi_enable(member->ep));
}

void member_open(struct member *member, unsigned me, unsigned n)
{
	member_open_with(member, me, n, MEMBER_ONE_SIDED, 0);
}

void member_open_with(struct member *member, unsigned me, unsigned n, uint64_t caps,
		      uint64_t cq_flags)
{
	uint64_t name[2];
	size_t len = sizeof(name);

	*member = (struct member){.me = me, .n = n};
	open_objects(member, caps, cq_flags);
	member->memory = calloc(1, MEMBER_BYTES);
	t_holds(member->memory);
	t_ok(fi_mr_reg(member->domain, member->memory, MEMBER_BYTES,
		       FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &member->mr, NULL));
	if (caps & FI_RMA_EVENT) {
		t_ok(fi_mr_bind(member->mr, &member->touched->fid,
				FI_REMOTE_WRITE | FI_REMOTE_READ));
		t_eq(fi_mr_bind(member->mr, &member->reads->fid, FI_REMOTE_READ), -FI_EBUSY);
		t_eq(fi_close(&member->touched->fid), -FI_EBUSY);
	} else {
		t_eq(fi_mr_bind(member->mr, &member->touched->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
	}
	t_ok(fi_getname(&member->ep->fid, name, &len));
	t_eq(len, sizeof(name));
	procs_put(K_NAME, name[0]);
	procs_put(K_NAME_END, name[1]);
	procs_put(K_ADDR, (uintptr_t)member->memory);
	procs_put(K_KEY, fi_mr_key(member->mr));
	for (unsigned i = 0; i < n; i++) {
		name[0] = procs_get(i, K_NAME);
		name[1] = procs_get(i, K_NAME_END);
		t_eq(fi_av_insert(member->av, name, 1, &member->peers[i], 0, NULL), 1);
		member->addrs[i] = procs_get(i, K_ADDR);
		member->keys[i] = procs_get(i, K_KEY);
	}
	procs_barrier();
}

void member_close(struct member *member)
{
	procs_barrier();
	member_close_alone(member);
}

void member_close_alone(struct member *member)
{
	t_ok(fi_close(&member->ep->fid));
	t_ok(fi_close(&member->mr->fid));
	t_ok(fi_close(&member->touched->fid));
	t_ok(fi_close(&member->remote_reads->fid));
	t_ok(fi_close(&member->remote_writes->fid));
	t_ok(fi_close(&member->reads->fid));
	t_ok(fi_close(&member->writes->fid));
	t_ok(fi_close(&member->rx->fid));
	t_ok(fi_close(&member->tx->fid));
	t_ok(fi_close(&member->av->fid));
	t_ok(fi_close(&member->domain->fid));
	t_ok(fi_close(&member->fabric->fid));
	fi_freeinfo(member->info);
	free(member->memory);
}

struct fi_cq_tagged_entry member_completion(struct fid_cq *cq, const void *context)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	ssize_t rc;

	while ((rc = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
		t_holds(true);
	if (rc == -FI_EAVAIL) {
		fi_cq_readerr(cq, &error, 0);
		t_fail("the operation ended with %s", fi_strerror(error.err));
	}
	t_eq(rc, 1);
	t_true(entry.op_context == context, "the completion is that of another operation");
	return entry;
}

struct fi_cq_err_entry member_failure(struct fid_cq *cq, const void *context)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	ssize_t rc;

	while ((rc = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN)
		t_holds(true);
	t_eq(rc, -FI_EAVAIL);
	t_eq(fi_cq_readerr(cq, &error, 0), 1);
	t_true(error.op_context == context, "the error is that of another operation");
	return error;
}

int member_error(struct fid_cq *cq, const void *context)
{
	return member_failure(cq, context).err;
}

void member_silent(struct member *member)
{
	struct fi_cq_tagged_entry entry;

	procs_barrier();
	t_eq(fi_cq_read(member->tx, &entry, 1), -FI_EAGAIN);
	t_eq(fi_cq_read(member->rx, &entry, 1), -FI_EAGAIN);
}

static unsigned char byte_of(unsigned seed, size_t at)
{
	return (unsigned char)(seed * 31 + at + (at >> 8) * 7);
}

void member_fill(void *data, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		((unsigned char *)data)[i] = byte_of(seed, i);
}

void member_check(const void *data, size_t len, unsigned seed)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < len; i++)
		t_true(bytes[i] == byte_of(seed, i), "byte %zu of %zu is %u", i, len, bytes[i]);
}

void member_part(unsigned me, void *part)
{
	const struct member_part *how = part;
	struct member member;

	member_open_with(&member, me, 2, how->caps, how->cq_flags);
	if (me == 0)
		how->sender(&member);
	else
		how->receiver(&member);
	member_silent(&member);
	member_close(&member);
}
