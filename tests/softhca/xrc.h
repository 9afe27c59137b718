/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xrc.h - shared by the XRC tests, beside util.h and procs.h: domains, XRC SRQs, sends that name
 * one, and the roles of tests with several processes.
 */
#ifndef T_XRC_H
#define T_XRC_H

#include "procs.h"

/* Makes an empty file that names a domain. Returns a descriptor, and in path (32 bytes) its
 * path. */
int x_file(char *path);
/* Opens a domain; fd -1: a private one. The _try form may return NULL with errno. */
struct ibv_xrcd *x_open_try(struct t_dev *dev, int fd, int oflags);
struct ibv_xrcd *x_open(struct t_dev *dev, int fd, int oflags);
/* Creates an XRC SRQ of 32 receives in that PD (NULL: the device's). */
struct ibv_srq *x_srq_try(struct t_dev *dev, struct ibv_pd *pd, struct ibv_xrcd *xrcd,
			  struct ibv_cq *cq);
struct ibv_srq *x_srq(struct t_dev *dev, struct ibv_pd *pd, struct ibv_xrcd *xrcd,
		      struct ibv_cq *cq);
uint32_t x_num(struct ibv_srq *srq);
/* Posts a signalled request to that SRQ. x_send() posts a signalled send of `sge`. */
void x_post(struct t_qp *ini, struct ibv_send_wr *wr, uint32_t srqn);
void x_send(struct t_qp *ini, uint64_t wr_id, struct ibv_sge sge, uint32_t srqn);
/* Opens the target QP of that number. Returns NULL with errno if that fails. */
struct ibv_qp *x_open_qp(struct t_dev *dev, struct ibv_xrcd *xrcd, uint32_t qpn);

/* A domain, an initiator and its target in one process, an SRQ and its CQ, memory. */
struct x_set {
	struct t_dev *dev;
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	uint32_t srqn;
	struct t_qp *ini, *tgt;
	struct t_buf b;
};
struct x_set x_set(struct t_dev *dev, const struct t_params *params);
void x_set_free(struct x_set *set);

/* ---- several processes: child 0 has the initiator, the others have SRQs ---- */

#define X_LEN 100000 /* bytes of a receive */

/* Keys of the mailbox. */
enum x_key {
	X_K_TGT = 0,
	X_K_INI = 4,
	X_K_SRQ = 8,
	X_K_BUF = 10,
	X_K_FREE = 16 /* the first key for the test itself */
};

struct x_receiver {
	struct t_dev *dev;
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct t_buf b;
	struct ibv_sge all; /* all of b, for a receive */
};
struct x_receiver x_receiver(const char *path);
void x_receiver_free(struct x_receiver *receiver);
/* Makes the target that answers child 0's initiator. */
struct t_qp *x_target(struct x_receiver *receiver);
/* Takes one message with that seed, which is also the receive's wr_id. */
void x_take(struct x_receiver *receiver, unsigned seed, size_t len);

struct x_sender {
	struct t_dev *dev;
	struct t_qp *q;
	struct t_buf b;
};
/* Makes child 0's initiator, connected with the target that child `tgt` shows. */
struct x_sender x_sender(unsigned tgt);
void x_sender_free(struct x_sender *sender);
/* Sends to the SRQ of child `who`, and takes the completion. */
void x_send_to(struct x_sender *sender, unsigned who, unsigned seed, size_t len,
	       enum ibv_wc_status want);

#endif
