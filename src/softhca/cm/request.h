/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * request.h - connection requests, on their way from one identifier to a listening one. Identifiers
 * of datagrams ask for a QP's number (SIDR), the others for a connection.
 */
#ifndef SHCA_CM_REQUEST_H
#define SHCA_CM_REQUEST_H

#include "cells.h"

/* Sends the request of an identifier with a path. Returns 0 or -errno. */
int shca_request_send(struct shca_fabric *fabric, struct shca_cm_id *id,
		      const struct rdma_ucm_connect *cmd);
/* Sends a request again that had no answer in time, or gives up. */
void shca_request_resend(struct shca_fabric *fabric, struct shca_cm_id *id);

#endif
