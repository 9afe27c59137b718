/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoint.h - the device of a process, with its buffers and lanes. Each process sends from one
 * buffer and receives into one buffer, whatever the test, so that all tests of a size touch the
 * same memory.
 */
#ifndef BENCH_VERBS_ENDPOINT_H
#define BENCH_VERBS_ENDPOINT_H

#include "lane.h"

struct endpoint {
	struct process_pair *pair;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	struct ibv_mr *send_mr, *recv_mr;
	struct ibv_port_attr port;
	uint8_t *send_buf, *recv_buf;
	uint32_t size; /* of a buffer */
	bool has_xrc;
	struct lane lane[LANE_KINDS];
};

/*
 * Opens the device (NULL: the first), makes all lanes and connects them; both processes call it.
 * xrc_fd is an open file that both have, which names the XRC domain.
 */
void endpoint_open(struct endpoint *endpoint, struct process_pair *pair, const char *device,
		   uint32_t size, int xrc_fd);
void endpoint_close(struct endpoint *endpoint);

/* Sends a pattern over each lane in each direction and by each operation, and ends the benchmark if
 * it is changed. */
void endpoint_check(struct endpoint *endpoint);

#endif
