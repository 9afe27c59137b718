/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * message.c - filling in what messages carry.
 */
#include "message.h"

#include <errno.h>
#include <string.h>

#include "deadline.h"
#include "route.h"

#define MAD 256u /* bytes of each message (IBA 13.4.2) */

uint64_t shca_message_arrives(const struct shca_fabric *fabric, const struct shca_cm_id *id,
			      uint64_t leaves_at)
{
	const struct shca_config *config = &fabric->hdr->config;

	if (!config->link_on)
		return 0;
	if (!leaves_at)
		leaves_at = shca_deadline_now(fabric);
	return leaves_at + config->link_latency_ns +
	       shca_config_busy_time(config, id->hca == id->dest_hca, MAD);
}

void shca_message_copy_data(uint8_t *to, uint8_t *to_len, const uint8_t *from, uint8_t from_len,
			    uint8_t room)
{
	memset(to, 0, room);
	if (from_len)
		memcpy(to, from, from_len < room ? from_len : room);
	*to_len = room;
}

int shca_message_set_qkey(struct shca_cm_id *id, uint32_t qkey)
{
	if (!qkey && !id->qkey)
		id->qkey = id->port_space == RDMA_PS_IPOIB ? SHCA_MESSAGE_IPOIB_QKEY
							   : SHCA_MESSAGE_UDP_QKEY;
	if (!qkey)
		return 0;
	if (id->qkey && id->qkey != qkey)
		return -EINVAL;
	id->qkey = qkey;
	return 0;
}

void shca_message_fill_ud(struct shca_fabric *fabric, const struct shca_cm_id *id,
			  struct rdma_ucm_ud_param *ud)
{
	ud->qp_num = id->remote_qpn;
	ud->qkey = id->qkey;
	shca_route_vector(fabric->hdr, id->hca - 1, id->dest_hca - 1,
			  shca_route_kind(&id->destination), &ud->ah_attr);
}
