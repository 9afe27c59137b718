/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Ialltoall(v, w), MPI_Iallgather(v), MPI_Igather(v) and MPI_Iscatter(v). */
#include "blocks.h"

#include "coll.h"

/* ---- all to all ---- */

/* Copies this process's own block. */
static int copy_own(const struct mca_coll_tupleq_transfer *from,
		    const struct mca_coll_tupleq_transfer *to)
{
	return ompi_datatype_sndrcv(from->addr, (int32_t)from->count, from->type, to->addr,
				    (int32_t)to->count, to->type);
}

static size_t bytes_of(const struct mca_coll_tupleq_transfer *message)
{
	size_t size;

	ompi_datatype_type_size(message->type, &size);
	return size * message->count;
}

/* Adds sends of packed copies of the blocks that are to be received over. */
static int send_copies(struct mca_coll_tupleq_round *round, int size, int rank,
		       const struct mca_coll_tupleq_blocks *blocks)
{
	struct mca_coll_tupleq_transfer block;
	size_t total = 0, offset = 0;

	for (int i = 0; i < size; i++) {
		block = mca_coll_tupleq_block(blocks, i, i);
		total += bytes_of(&block);
	}
	round->pack = malloc(total ? total : 1);
	if (!round->pack)
		return OMPI_ERR_OUT_OF_RESOURCE;
	for (int i = 1; i < size; i++) {
		int peer = (rank + i) % size, rc = OMPI_SUCCESS;
		size_t bytes;

		block = mca_coll_tupleq_block(blocks, peer, peer);
		bytes = bytes_of(&block);
		if (bytes)
			rc = series_pack(block.addr, block.count, block.type, round->pack + offset,
					 bytes);
		if (rc != OMPI_SUCCESS)
			return rc;
		block.addr = round->pack + offset;
		block.count = bytes;
		block.type = &ompi_mpi_byte.dt;
		mca_coll_tupleq_round_send(round, block);
		offset += bytes;
	}
	return OMPI_SUCCESS;
}

/* Adds the messages of one process. In turn from its own rank, upwards for sends and downwards for
 * receives, so that no process is the first target of all others. */
static int add_messages(struct mca_coll_tupleq_round *round, ompi_communicator_t *comm,
			const struct mca_coll_tupleq_blocks *out,
			const struct mca_coll_tupleq_blocks *in)
{
	int size = ompi_comm_size(comm), rank = ompi_comm_rank(comm);
	struct mca_coll_tupleq_transfer from, to;

	for (int i = 1; i < size; i++) {
		int peer = (rank - i + size) % size;

		mca_coll_tupleq_round_receive(round, mca_coll_tupleq_block(in, peer, peer));
	}
	if (out->base == MPI_IN_PLACE)
		return send_copies(round, size, rank, in);
	for (int i = 1; i < size; i++) {
		int peer = (rank + i) % size;

		mca_coll_tupleq_round_send(round, mca_coll_tupleq_block(out, peer, peer));
	}
	from = mca_coll_tupleq_block(out, rank, rank);
	to = mca_coll_tupleq_block(in, rank, rank);
	return from.addr == to.addr && from.type == to.type ? OMPI_SUCCESS : copy_own(&from, &to);
}

static int all_to_all(ompi_communicator_t *comm, mca_coll_base_module_t *base,
		      const struct mca_coll_tupleq_blocks *out,
		      const struct mca_coll_tupleq_blocks *in, ompi_request_t **request)
{
	int peers = ompi_comm_size(comm) - 1;
	struct mca_coll_tupleq_round *round =
		mca_coll_tupleq_round_new((struct mca_coll_tupleq_module *)base, peers, peers);

	if (!round)
		return OMPI_ERR_OUT_OF_RESOURCE;
	return mca_coll_tupleq_round_start(round, add_messages(round, comm, out, in), request);
}

static int ialltoall(const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf, int rcount,
		     ompi_datatype_t *rtype, ompi_communicator_t *comm, ompi_request_t **request,
		     mca_coll_base_module_t *base)
{
	const struct mca_coll_tupleq_blocks out = {.base = sbuf, .count = scount, .type = stype};
	const struct mca_coll_tupleq_blocks in = {.base = rbuf, .count = rcount, .type = rtype};

	return all_to_all(comm, base, &out, &in, request);
}

static int ialltoallv(const void *sbuf, const int *scounts, const int *sdispls,
		      ompi_datatype_t *stype, void *rbuf, const int *rcounts, const int *rdispls,
		      ompi_datatype_t *rtype, ompi_communicator_t *comm, ompi_request_t **request,
		      mca_coll_base_module_t *base)
{
	const struct mca_coll_tupleq_blocks out = {
		.base = sbuf, .counts = scounts, .displs = sdispls, .type = stype};
	const struct mca_coll_tupleq_blocks in = {
		.base = rbuf, .counts = rcounts, .displs = rdispls, .type = rtype};

	return all_to_all(comm, base, &out, &in, request);
}

static int ialltoallw(const void *sbuf, const int *scounts, const int *sdispls,
		      ompi_datatype_t *const *stypes, void *rbuf, const int *rcounts,
		      const int *rdispls, ompi_datatype_t *const *rtypes, ompi_communicator_t *comm,
		      ompi_request_t **request, mca_coll_base_module_t *base)
{
	const struct mca_coll_tupleq_blocks out = {
		.base = sbuf, .counts = scounts, .displs = sdispls, .types = stypes};
	const struct mca_coll_tupleq_blocks in = {
		.base = rbuf, .counts = rcounts, .displs = rdispls, .types = rtypes};

	return all_to_all(comm, base, &out, &in, request);
}

/* Returns what this process sends to all: its own block, where that is in place already. */
static struct mca_coll_tupleq_blocks contribution(const void *sbuf, int scount,
						  ompi_datatype_t *stype, int rank,
						  const struct mca_coll_tupleq_blocks *in)
{
	struct mca_coll_tupleq_blocks out = {
		.base = sbuf, .count = scount, .type = stype, .single = true};
	struct mca_coll_tupleq_transfer own;

	if (sbuf == MPI_IN_PLACE) {
		own = mca_coll_tupleq_block(in, rank, rank);
		out.base = own.addr;
		out.count = (int)own.count;
		out.type = own.type;
	}
	return out;
}

static int iallgather(const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf, int rcount,
		      ompi_datatype_t *rtype, ompi_communicator_t *comm, ompi_request_t **request,
		      mca_coll_base_module_t *base)
{
	const struct mca_coll_tupleq_blocks in = {.base = rbuf, .count = rcount, .type = rtype};
	const struct mca_coll_tupleq_blocks out =
		contribution(sbuf, scount, stype, ompi_comm_rank(comm), &in);

	return all_to_all(comm, base, &out, &in, request);
}

static int iallgatherv(const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf,
		       const int *rcounts, const int *displs, ompi_datatype_t *rtype,
		       ompi_communicator_t *comm, ompi_request_t **request,
		       mca_coll_base_module_t *base)
{
	const struct mca_coll_tupleq_blocks in = {
		.base = rbuf, .counts = rcounts, .displs = displs, .type = rtype};
	const struct mca_coll_tupleq_blocks out =
		contribution(sbuf, scount, stype, ompi_comm_rank(comm), &in);

	return all_to_all(comm, base, &out, &in, request);
}

/* ---- to and from a root ---- */

/* Gathers if `is_gather`, else scatters: `all` are the root's blocks, `own` is each process's. */
static int rooted(ompi_communicator_t *comm, mca_coll_base_module_t *base, int root, bool is_gather,
		  const struct mca_coll_tupleq_blocks *all,
		  const struct mca_coll_tupleq_blocks *own, ompi_request_t **request)
{
	void (*add)(struct mca_coll_tupleq_round *, struct mca_coll_tupleq_transfer);
	int size = ompi_comm_size(comm), rank = ompi_comm_rank(comm), n, rc = OMPI_SUCCESS;
	struct mca_coll_tupleq_transfer mine, root_block;
	struct mca_coll_tupleq_round *round;

	n = rank == root ? size - 1 : 1;
	round = mca_coll_tupleq_round_new((struct mca_coll_tupleq_module *)base, n, n);
	if (!round)
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (rank != root) {
		add = is_gather ? mca_coll_tupleq_round_send : mca_coll_tupleq_round_receive;
		add(round, mca_coll_tupleq_block(own, 0, root));
		return mca_coll_tupleq_round_start(round, OMPI_SUCCESS, request);
	}
	add = is_gather ? mca_coll_tupleq_round_receive : mca_coll_tupleq_round_send;
	for (int i = 1; i < size; i++) {
		int peer = (root + i) % size;

		add(round, mca_coll_tupleq_block(all, peer, peer));
	}
	if (own->base != MPI_IN_PLACE) {
		mine = mca_coll_tupleq_block(own, 0, root);
		root_block = mca_coll_tupleq_block(all, root, root);
		rc = is_gather ? copy_own(&mine, &root_block) : copy_own(&root_block, &mine);
	}
	return mca_coll_tupleq_round_start(round, rc, request);
}

static int igather(const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf, int rcount,
		   ompi_datatype_t *rtype, int root, ompi_communicator_t *comm,
		   ompi_request_t **request, mca_coll_base_module_t *base)
{
	const struct mca_coll_tupleq_blocks own = {
		.base = sbuf, .count = scount, .type = stype, .single = true};
	const struct mca_coll_tupleq_blocks all = {.base = rbuf, .count = rcount, .type = rtype};

	return rooted(comm, base, root, true, &all, &own, request);
}

static int igatherv(const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf,
		    const int *rcounts, const int *displs, ompi_datatype_t *rtype, int root,
		    ompi_communicator_t *comm, ompi_request_t **request,
		    mca_coll_base_module_t *base)
{
	const struct mca_coll_tupleq_blocks own = {
		.base = sbuf, .count = scount, .type = stype, .single = true};
	const struct mca_coll_tupleq_blocks all = {
		.base = rbuf, .counts = rcounts, .displs = displs, .type = rtype};

	return rooted(comm, base, root, true, &all, &own, request);
}

static int iscatter(const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf, int rcount,
		    ompi_datatype_t *rtype, int root, ompi_communicator_t *comm,
		    ompi_request_t **request, mca_coll_base_module_t *base)
{
	const struct mca_coll_tupleq_blocks own = {
		.base = rbuf, .count = rcount, .type = rtype, .single = true};
	const struct mca_coll_tupleq_blocks all = {.base = sbuf, .count = scount, .type = stype};

	return rooted(comm, base, root, false, &all, &own, request);
}

static int iscatterv(const void *sbuf, const int *scounts, const int *displs,
		     ompi_datatype_t *stype, void *rbuf, int rcount, ompi_datatype_t *rtype,
		     int root, ompi_communicator_t *comm, ompi_request_t **request,
		     mca_coll_base_module_t *base)
{
	const struct mca_coll_tupleq_blocks own = {
		.base = rbuf, .count = rcount, .type = rtype, .single = true};
	const struct mca_coll_tupleq_blocks all = {
		.base = sbuf, .counts = scounts, .displs = displs, .type = stype};

	return rooted(comm, base, root, false, &all, &own, request);
}

void mca_coll_tupleq_round_dense(mca_coll_base_module_t *base)
{
	base->coll_ialltoall = ialltoall;
	base->coll_ialltoallv = ialltoallv;
	base->coll_ialltoallw = ialltoallw;
	base->coll_iallgather = iallgather;
	base->coll_iallgatherv = iallgatherv;
	base->coll_igather = igather;
	base->coll_igatherv = igatherv;
	base->coll_iscatter = iscatter;
	base->coll_iscatterv = iscatterv;
}
