/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member.h - shared by tests of two processes: a process of procs.h with an endpoint, memory
 * that the others may change, and a completion queue.
 */
#ifndef MEMBER_H
#define MEMBER_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "procs.h"

/* The version of the interface: the first one whose error entries have the peer's address, if the
 * headers know it. */
#if FI_MAJOR_VERSION > 1 || FI_MINOR_VERSION >= 20
#define MEMBER_VERSION FI_VERSION(1, 20)
#else
#define MEMBER_VERSION FI_VERSION(1, 9)
#endif
#define MEMBER_BYTES (1u << 20)
#define MEMBER_ONE_SIDED \
	(FI_MSG | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MEMBER_KEY_FREE 16 /* keys of procs.h from here on are the test's */

struct member {
	unsigned me, n;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *tx, *rx;
	struct fid_cntr *writes, *reads, *remote_writes, *remote_reads, *touched;
	struct fid_ep *ep;
	struct fid_mr *mr;
	unsigned char *memory; /* MEMBER_BYTES, which peers may read and write */
	fi_addr_t peers[PROCS_MAX];
	uint64_t addrs[PROCS_MAX], keys[PROCS_MAX]; /* of the peers' memory */
};

/* Opens an endpoint for one-sided operations. All members are known then, and have come here. */
void member_open(struct member *member, unsigned me, unsigned n);
/* Opens an endpoint with these capabilities, bound to its completion queues with `cq_flags`. */
void member_open_with(struct member *member, unsigned me, unsigned n, uint64_t caps,
		      uint64_t cq_flags);
/* Closes it when all have come here. */
void member_close(struct member *member);
/* Closes it at once. */
void member_close_alone(struct member *member);

/* Takes a completion, which has to have this context and to be a success. */
struct fi_cq_tagged_entry member_completion(struct fid_cq *cq, const void *context);
/* Takes an error, which has to have this context. */
struct fi_cq_err_entry member_failure(struct fid_cq *cq, const void *context);
/* Takes an error, and returns its number. */
int member_error(struct fid_cq *cq, const void *context);
/* Expects that no completion comes before all members have come here. */
void member_silent(struct member *member);

/* A part of a test, with two processes: the first of them is the sender. */
struct member_part {
	void (*sender)(struct member *member);
	void (*receiver)(struct member *member);
	uint64_t caps, cq_flags;
};

/* Runs this process's side of a struct member_part, for procs_run(). */
void member_part(unsigned me, void *part);

/* Defines test NAME: NAME_sender() and NAME_receiver() as such a part, in a file with NPROCS, nodes
 * and CAPS. */
#define MEMBER_TEST(name, flags)                                                        \
	static void name(void **state)                                                  \
	{                                                                               \
		struct member_part how = {name##_sender, name##_receiver, CAPS, flags}; \
                                                                                        \
		(void)state;                                                            \
		procs_run(NPROCS, nodes, member_part, &how);                            \
	}

/* Starts an operation again and again while it returns -FI_EAGAIN. Returns its last result. */
#define member_try(member, call)                           \
	({                                                 \
		ssize_t result_;                           \
		while ((result_ = (call)) == -FI_EAGAIN)   \
			fi_cq_read((member)->tx, NULL, 0); \
		result_;                                   \
	})
#define member_start(member, call) t_eq(member_try(member, call), 0)

/* The byte of data `seed` at an offset; member_fill() writes such data, member_check() expects
 * them. */
void member_fill(void *data, size_t len, unsigned seed);
void member_check(const void *data, size_t len, unsigned seed);

#endif
