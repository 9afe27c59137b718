/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connection.h - what follows a request: answer, confirmation, rejection, and the end of a
 * connection. Functions return 0 or -errno, as the kernel's do.
 */
#ifndef SHCA_CM_CONNECTION_H
#define SHCA_CM_CONNECTION_H

#include "cells.h"

/* Accepts a request (REP, or SIDR_REP), or if cmd->conn_param isn't valid confirms an answer (RTU).
 */
int shca_connection_accept(struct shca_fabric *fabric, struct shca_cm_id *id,
			   const struct rdma_ucm_accept *cmd);
/* Returns true if the node at which a REQ or REP of `from` arrives at time `at` (0: now) has a
 * connection with the QP which the message names. That connection is ended then, and the message
 * rejected. */
bool shca_connection_is_stale(struct shca_fabric *fabric, struct shca_cm_id *from, uint64_t at);
/* Takes data that have arrived for the confirmation, which may be lost. */
int shca_connection_notify(struct shca_fabric *fabric, struct shca_cm_id *id, uint32_t event);
int shca_connection_reject(struct shca_fabric *fabric, struct shca_cm_id *id, uint8_t reason,
			   const uint8_t *data, uint8_t len);
/* Begins the end of a connection (DREQ), or agrees to it (DREP). */
int shca_connection_disconnect(struct shca_fabric *fabric, struct shca_cm_id *id);

/* Tells the peer that an identifier is destroyed. */
void shca_connection_destroyed(struct shca_fabric *fabric, struct shca_cm_id *id);
/* Sends a message that isn't a request again, or gives up, at an identifier's deadline. */
void shca_connection_due(struct shca_fabric *fabric, struct shca_cm_id *id);

#endif
