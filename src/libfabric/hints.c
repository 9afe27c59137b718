/* SPDX-License-Identifier: BSD-3-Clause */
#include "hints.h"

#include "addr.h"
#include "info.h"
#include "vector.h"
#include "versions.h"

#define TX_OP_FLAGS                                                              \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_FENCE | FI_MORE | FI_REMOTE_CQ_DATA)
#define RX_OP_FLAGS (FI_COMPLETION | FI_MULTI_RECV | FI_MORE)
/* FI_PROGRESS_CONTROL_UNIFIED of later versions of the interface. */
#define LAST_PROGRESS 3

/* Returns true if one of the flags in `asked` isn't offered. */
static bool lacks(uint64_t asked, uint64_t offered)
{
	return asked & ~offered;
}

static bool tx_fits(const struct fi_tx_attr *attr)
{
	return !lacks(attr->caps, TF_CAPS) && !lacks(attr->op_flags, TX_OP_FLAGS) &&
	       !lacks(attr->msg_order, TF_ORDER) && !attr->comp_order &&
	       attr->inject_size <= TF_INJECT_SIZE && attr->size <= TF_MAX_SIZE &&
	       attr->iov_limit <= TF_IOV_LIMIT && attr->rma_iov_limit <= TF_IOV_LIMIT;
}

static bool rx_fits(const struct fi_rx_attr *attr)
{
	return !lacks(attr->caps, TF_CAPS) && !lacks(attr->op_flags, RX_OP_FLAGS) &&
	       !lacks(attr->msg_order, TF_ORDER) && !attr->comp_order &&
	       attr->size <= TF_MAX_SIZE && attr->iov_limit <= TF_IOV_LIMIT;
}

static bool ep_fits(const struct fi_ep_attr *attr)
{
	if (attr->type != FI_EP_UNSPEC && attr->type != FI_EP_RDM)
		return false;
	if (attr->protocol != FI_PROTO_UNSPEC && attr->protocol != TF_PROTOCOL)
		return false;
	return attr->protocol_version <= TF_PROTOCOL_VERSION &&
	       attr->max_msg_size <= TF_MAX_MESSAGE && !attr->msg_prefix_size &&
	       !attr->max_order_raw_size && !attr->max_order_war_size &&
	       !attr->max_order_waw_size && attr->tx_ctx_cnt <= 1 && attr->rx_ctx_cnt <= 1 &&
	       !attr->auth_key_size;
}

static bool domain_fits(const struct fi_domain_attr *attr)
{
	return (unsigned)attr->control_progress <= LAST_PROGRESS &&
	       (unsigned)attr->data_progress <= FI_PROGRESS_MANUAL &&
	       (unsigned)attr->av_type <= FI_AV_TABLE && attr->mr_key_size <= sizeof(uint64_t) &&
	       attr->cq_data_size <= sizeof(uint64_t) && attr->max_ep_tx_ctx <= 1 &&
	       attr->max_ep_rx_ctx <= 1 && !attr->max_ep_stx_ctx && !attr->max_ep_srx_ctx &&
	       attr->mr_iov_limit <= 1 && !lacks(attr->caps, TF_DOMAIN_CAP) && !attr->auth_key_size;
}

/* ---- registrations ---- */

/* Returns true if the caller can meet what registrations for peers ask of it. */
static bool can_register(uint32_t version, const struct fi_info *hints)
{
	int mode;

	if (!hints || !hints->domain_attr)
		return true;
	mode = hints->domain_attr->mr_mode;
	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return mode == TF_MR_UNSPEC || mode == TF_MR_BASIC;
	return mode == TF_MR_BASIC || (mode & TF_MR_MODE) == TF_MR_MODE;
}

int tf_hints_mr_mode(uint32_t version, const struct fi_info *hints, uint64_t caps)
{
	int mode = hints && hints->domain_attr ? hints->domain_attr->mr_mode : TF_MR_UNSPEC;

	if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
		return mode ? mode : TF_MR_BASIC;
	if (mode == TF_MR_BASIC || mode == TF_MR_SCALABLE)
		return mode;
	if (!hints || !hints->domain_attr)
		return TF_MR_MODE;
	return caps & TF_ONE_SIDED ? TF_MR_MODE : mode & TF_MR_MODE;
}

/* ---- all ---- */

uint64_t tf_hints_caps(uint32_t version, const struct fi_info *hints)
{
	uint64_t asked = hints ? hints->caps : 0, caps;

	if (!asked) {
		caps = TF_CAPS & ~FI_RMA_EVENT; /* which costs messages */
		return can_register(version, hints) ? caps : caps & ~TF_ONE_SIDED;
	}
	caps = (asked & TF_CAPS) | TF_SECONDARY;
	/* Without a direction both are meant. */
	if ((caps & (FI_MSG | FI_TAGGED)) && !(caps & (FI_SEND | FI_RECV)))
		caps |= FI_SEND | FI_RECV;
	if ((caps & (FI_RMA | FI_ATOMIC)) && !(caps & TF_RIGHTS))
		caps |= TF_RIGHTS;
	return caps;
}

/* Returns true if there is no address, or a valid one. */
static bool addr_fits(uint32_t format, const void *addr, size_t len)
{
	struct tf_addr read;

	return !addr || tf_addr_read(&read, format, addr, len);
}

bool tf_hints_fit(uint32_t version, const struct fi_info *hints)
{
	if (!hints)
		return true;
	if (lacks(hints->caps, TF_CAPS))
		return false;
	if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != TF_ADDR_FORMAT &&
	    hints->addr_format != FI_ADDR_STR)
		return false;
	if (!addr_fits(hints->addr_format, hints->src_addr, hints->src_addrlen) ||
	    !addr_fits(hints->addr_format, hints->dest_addr, hints->dest_addrlen))
		return false;
	if ((hints->caps & TF_ONE_SIDED) && !can_register(version, hints))
		return false;
	return (!hints->tx_attr || tx_fits(hints->tx_attr)) &&
	       (!hints->rx_attr || rx_fits(hints->rx_attr)) &&
	       (!hints->ep_attr || ep_fits(hints->ep_attr)) &&
	       (!hints->domain_attr || domain_fits(hints->domain_attr));
}
