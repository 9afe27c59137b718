/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/adapter/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>

const char *tq_missing_of_xrc(struct ibv_context *verbs, int *error)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};
	struct ibv_qp_open_attr again = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp *made = NULL, *opened = NULL;
	const char *verb = "ibv_open_xrcd()";

	again.xrcd = init.xrcd = ibv_open_xrcd(verbs, &domain);
	if (init.xrcd) {
		verb = "ibv_create_qp_ex() of a target queue pair";
		made = ibv_create_qp_ex(verbs, &init);
	}
	if (made) {
		verb = "ibv_open_qp()";
		again.qp_num = made->qp_num;
		opened = ibv_open_qp(verbs, &again);
	}
	*error = opened ? 0 : errno;
	if (opened)
		ibv_destroy_qp(opened);
	if (made)
		ibv_destroy_qp(made);
	if (init.xrcd)
		ibv_close_xrcd(init.xrcd);
	return *error ? verb : NULL;
}
