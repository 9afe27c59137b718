/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp.h - queue pairs, their attributes, and their way to RTS.
 */
#ifndef T_QP_H
#define T_QP_H

#include <stdbool.h>

#include "device.h"

#define T_QKEY 0x1ee7a11u

/* The attributes of a QP; zero means the default. */
struct t_spec {
	enum ibv_qp_type type; /* default RC */
	struct ibv_qp_cap cap; /* default: 16 + 16 WRs, 4 + 4 SGEs, no inline data */
	int sq_sig_all;
	int cq_depth;       /* of CQs that t_qp() creates; default 64 */
	struct ibv_pd *pd;  /* default: the device's */
	struct ibv_cq *scq; /* default: a CQ of the QP's own */
	struct ibv_cq *rcq; /* default: another CQ of the QP's own */
	struct ibv_srq *srq;
	struct ibv_xrcd *xrcd; /* for XRC_RECV */
	uint64_t send_ops; /* IBV_QP_EX_WITH_...: uses ibv_create_qp_ex, for the ibv_wr_* calls */
};

struct t_qp {
	struct t_dev *dev;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx; /* if send_ops is set */
	struct ibv_cq *scq, *rcq;
	bool own_scq, own_rcq;
	enum ibv_qp_type type;
	struct ibv_qp_cap cap; /* as granted */
};

/* The attributes that the transitions set. A test starts from t_params() and changes the fields
 * that it is about. */
struct t_params {
	uint8_t port_num;
	uint16_t pkey_index;
	unsigned access;
	uint32_t qkey;
	enum ibv_mtu mtu;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t timeout, retry_cnt, rnr_retry;
	uint32_t sq_psn, rq_psn;
	bool grh;
	uint8_t sgid_index;
};

/* The address of a peer: plain data, so that processes may exchange it. */
struct t_addr {
	union ibv_gid gid;
	uint32_t qpn;
	uint16_t lid;
	uint16_t pad;
};

/* Returns the defaults: a GRH on Ethernet, all access, the port's MTU, 16 reads, RNR timer 12 (0.64
 * ms), timeout 14, retries 7 and 7. */
struct t_params t_params(const struct t_dev *dev);

/* Returns the defaults with a timeout of 1 ms (8), and that many retries. */
struct t_params t_params_quick(const struct t_dev *dev, uint8_t retry_cnt);

/* Creates a QP, or returns NULL with errno: for tests of refusals. */
struct t_qp *t_qp_try(struct t_dev *dev, const struct t_spec *spec);
/* Creates a QP; spec may be NULL. */
struct t_qp *t_qp(struct t_dev *dev, const struct t_spec *spec);
/* Destroys the QP, then the CQs that were created for it. */
void t_qp_free(struct t_qp *qp);
struct t_addr t_addr(const struct t_qp *qp);

/* Fill attr for the transition of a QP of that type, and return the mask. Only RC, UC and XRC use
 * peer. */
int t_attr_init(enum ibv_qp_type type, const struct t_params *params, struct ibv_qp_attr *attr);
int t_attr_rtr(enum ibv_qp_type type, const struct t_params *params, const struct t_addr *peer,
	       struct ibv_qp_attr *attr);
int t_attr_rts(enum ibv_qp_type type, const struct t_params *params, struct ibv_qp_attr *attr);
/* Do one transition each; params may be NULL. */
void t_to_init(struct t_qp *qp, const struct t_params *params);
void t_to_rtr(struct t_qp *qp, const struct t_params *params, const struct t_addr *peer);
void t_to_rts(struct t_qp *qp, const struct t_params *params);
/* Modifies only the state. Returns the value of ibv_modify_qp(). */
int t_to_state(struct t_qp *qp, enum ibv_qp_state state);
/* Takes the QP from RESET to RTS. */
void t_up(struct t_qp *qp, const struct t_params *params, const struct t_addr *peer);
/* Brings two QPs (or one with itself) to RTS, each as the other's peer. */
void t_connect(struct t_qp *a, struct t_qp *b, const struct t_params *params);
enum ibv_qp_state t_state(struct t_qp *qp);
/* Waits until the QP is in that state. */
void t_await_state(struct t_qp *qp, enum ibv_qp_state state);

/* Two connected QPs with buffers for any use by the test. */
struct t_pair {
	struct t_dev *dev;
	struct t_qp *a, *b;
	struct t_buf ba, bb;
};
/* Creates a pair; spec and params may be NULL; each buffer has size bytes. */
struct t_pair t_pair(struct t_dev *dev, const struct t_spec *spec, const struct t_params *params,
		     size_t size);
void t_pair_free(struct t_pair *pair);

/* Creates an address handle for that peer. */
struct ibv_ah *t_ah(struct t_dev *dev, const struct t_addr *peer, bool grh);

#endif
