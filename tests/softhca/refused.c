/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * refused.c - calls each function of libibverbs that softhca refuses, and prints its name with the
 * error. test_functions.sh compares that with the table of softhca(7).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* strerrorname_np() */
#endif
#include <dlfcn.h>
#include <string.h>

#include "util.h"

static struct t_dev *dev;
static struct ibv_qp *qp;
static struct ibv_srq *srq;

/* Prints the error of a function that returns it, or that returns NULL with errno set. */
static void say(const char *name, int error)
{
	printf("%s %s\n", name, error ? strerrorname_np(error) : "0");
}
#define INT(name, ...)   say(#name, name(__VA_ARGS__))
#define NULL_(name, ...) (errno = 0, say(#name, name(__VA_ARGS__) ? 0 : errno))

/* An object that no function made. */
static union {
	struct ibv_flow flow;
	struct ibv_flow_action action;
	struct ibv_wq wq;
	struct ibv_rwq_ind_table table;
	struct ibv_counters counters;
	char room[1024];
} object;

static void flows(void)
{
	struct ibv_flow_attr attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(attr), .port = 1};
	struct ibv_flow_action_esp_attr esp = {.comp_mask = 0};

	object.flow.context = dev->ctx;
	NULL_(ibv_create_flow, qp, &attr);
	INT(ibv_destroy_flow, &object.flow);
	memset(&object, 0, sizeof(object));
	object.action.context = dev->ctx;
	NULL_(ibv_create_flow_action_esp, dev->ctx, &esp);
	INT(ibv_modify_flow_action_esp, &object.action, &esp);
	INT(ibv_destroy_flow_action, &object.action);
}

static void work_queues(void)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = dev->pd};
	struct ibv_rwq_ind_table_init_attr table = {.log_ind_tbl_size = 0};
	struct ibv_wq_attr change = {.attr_mask = IBV_WQ_ATTR_STATE};

	memset(&object, 0, sizeof(object));
	object.wq.context = dev->ctx;
	NULL_(ibv_create_wq, dev->ctx, &attr);
	INT(ibv_modify_wq, &object.wq, &change);
	INT(ibv_destroy_wq, &object.wq);
	memset(&object, 0, sizeof(object));
	object.table.context = dev->ctx;
	NULL_(ibv_create_rwq_ind_table, dev->ctx, &table);
	INT(ibv_destroy_rwq_ind_table, &object.table);
}

static void counters(void)
{
	struct ibv_counters_init_attr attr = {.comp_mask = 0};
	struct ibv_counter_attach_attr attach = {.counter_desc = IBV_COUNTER_PACKETS};
	uint64_t value;

	memset(&object, 0, sizeof(object));
	object.counters.context = dev->ctx;
	NULL_(ibv_create_counters, dev->ctx, &attr);
	INT(ibv_destroy_counters, &object.counters);
	INT(ibv_attach_counters_point_flow, &object.counters, &attach, &object.flow);
	INT(ibv_read_counters, &object.counters, &value, 1, 0);
}

static void foreign_memory(void)
{
	NULL_(ibv_reg_dmabuf_mr, dev->pd, 0, 4096, 0, 0, IBV_ACCESS_LOCAL_WRITE);
}

static void queue_pairs(void)
{
	struct ibv_qp_rate_limit_attr rate = {.rate_limit = 1000};
	struct ibv_ops_wr op = {.opcode = IBV_WR_TAG_ADD}, *bad;
	struct ibv_ece ece = {.options = 0};

	INT(ibv_set_ece, qp, &ece);
	INT(ibv_query_ece, qp, &ece);
	INT(ibv_modify_qp_rate_limit, qp, &rate);
	INT(ibv_post_srq_ops, srq, &op, &bad);
}

/* Asks for a queue pair of a type, or one with such operations. */
static void say_qp(const char *name, enum ibv_qp_type type, uint64_t operations)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | (operations ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.pd = dev->pd,
		.send_ops_flags = operations,
	};

	errno = 0;
	say(name, ibv_create_qp_ex(dev->ctx, &attr) ? 0 : errno);
}

static void abilities(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = dev->pd,
		.cq = qp->send_cq,
		.tm_cap = {.max_num_tags = 1, .max_ops = 1},
	};

	say_qp("IBV_QPT_RAW_PACKET", IBV_QPT_RAW_PACKET, 0);
	say_qp("IBV_QPT_DRIVER", IBV_QPT_DRIVER, 0);
	say_qp("IBV_QP_EX_WITH_TSO", IBV_QPT_UD, IBV_QP_EX_WITH_TSO);
	say_qp("IBV_QP_EX_WITH_ATOMIC_WRITE", IBV_QPT_RC, 1 << 12);
	say_qp("IBV_QP_EX_WITH_FLUSH", IBV_QPT_RC, 1 << 11);
	errno = 0;
	say("IBV_SRQT_TM", ibv_create_srq_ex(dev->ctx, &attr) ? 0 : errno);
}

/* Calls the functions of later versions, which look at no argument. */
static void later(void)
{
	static const char *const pointers[] = {"ibv_alloc_dmah", "ibv_reg_mr_ex", "ibv_alloc_buf",
					       "ibv_reg_buf_mr", "ibv_create_comp_cntr"};
	static const char *const others[] = {
		"ibv_dealloc_dmah",      "ibv_dm_export_dmabuf_fd",  "ibv_query_port_speed",
		"ibv_free_buf",          "ibv_export_buf_dmabuf_fd", "_ibv_query_comp_cntr_caps",
		"ibv_destroy_comp_cntr", "ibv_qp_attach_comp_cntr",  "ibv_set_comp_cntr",
		"ibv_set_err_comp_cntr", "ibv_inc_comp_cntr",        "ibv_inc_err_comp_cntr",
		"ibv_read_comp_cntr",    "ibv_read_err_comp_cntr",
	};

	for (size_t i = 0; i < sizeof(pointers) / sizeof(*pointers); i++) {
		void *(*function)(void);

		*(void **)&function = dlsym(RTLD_DEFAULT, pointers[i]);
		errno = 0;
		say(pointers[i], function && !function() ? errno : 0);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		int (*function)(void);

		*(void **)&function = dlsym(RTLD_DEFAULT, others[i]);
		errno = 0;
		say(others[i], function && function() ? errno : 0);
	}
}

int main(void)
{
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
	};

	dev = t_open();
	attr.send_cq = attr.recv_cq = ibv_create_cq(dev->ctx, 1, NULL, NULL, 0);
	qp = ibv_create_qp(dev->pd, &attr);
	srq = ibv_create_srq(dev->pd, &srq_attr);
	if (!qp || !srq)
		return 1;
	flows();
	work_queues();
	counters();
	foreign_memory();
	queue_pairs();
	abilities();
	later();
	return 0;
}
