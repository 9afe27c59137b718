/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * option.c - options of an identifier.
 */
#include "option.h"

#include <errno.h>
#include <string.h>

#include "resolve.h"

#define MAX_ACK_TIMEOUT 31

static int set_reuse(struct shca_cm_id *id, bool reuse)
{
	if (!(reuse && id->state != SHCA_CM_LISTEN) && id->state != SHCA_CM_IDLE)
		return -EINVAL;
	id->reuse_address = reuse;
	return 0;
}

static int set_family_only(struct shca_cm_id *id, bool only)
{
	if (id->state != SHCA_CM_IDLE && id->state != SHCA_CM_BOUND)
		return -EINVAL;
	id->own_family_only = only;
	return 0;
}

static int set_ack_timeout(struct shca_cm_id *id, uint8_t timeout)
{
	if (id->qp_type != IBV_QPT_RC && id->qp_type != IBV_QPT_XRC_SEND)
		return -EINVAL;
	id->ack_timeout = timeout & MAX_ACK_TIMEOUT;
	return 0;
}

static int set_of_id(struct shca_cm_id *id, const struct rdma_ucm_set_option *cmd,
		     const void *value)
{
	bool is_int =
		cmd->optname == RDMA_OPTION_ID_REUSEADDR || cmd->optname == RDMA_OPTION_ID_AFONLY;
	uint8_t byte;
	int number;

	if (cmd->optname > RDMA_OPTION_ID_ACK_TIMEOUT)
		return -ENOSYS;
	if (cmd->optlen != (is_int ? sizeof(number) : sizeof(byte)))
		return -EINVAL;
	memcpy(is_int ? (void *)&number : (void *)&byte, value, cmd->optlen);
	switch (cmd->optname) {
	case RDMA_OPTION_ID_TOS:
		id->tos = byte;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		return set_reuse(id, number != 0);
	case RDMA_OPTION_ID_AFONLY:
		return set_family_only(id, number != 0);
	default:
		return set_ack_timeout(id, byte);
	}
}

/* Takes a path from the program, in place of resolving the route. The fabric has one path between
 * any two ports, so only whether it is a path counts. */
static int set_path(struct shca_fabric *fabric, struct shca_cm_id *id,
		    const struct rdma_ucm_set_option *cmd, const struct ib_path_rec_data *paths)
{
	const uint32_t need = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;

	if (cmd->optlen % sizeof(*paths))
		return -EINVAL;
	for (size_t i = 0; i < cmd->optlen / sizeof(*paths); i++)
		if (paths[i].flags == need)
			return shca_resolve_take_route(fabric, id);
	return -EINVAL;
}

int shca_option_set(struct shca_fabric *fabric, struct shca_cm_id *id,
		    const struct rdma_ucm_set_option *cmd, const void *value)
{
	switch (cmd->level) {
	case RDMA_OPTION_ID:
		return set_of_id(id, cmd, value);
	case RDMA_OPTION_IB:
		return cmd->optname == RDMA_OPTION_IB_PATH ? set_path(fabric, id, cmd, value)
							   : -ENOSYS;
	default:
		return -ENOSYS;
	}
}
