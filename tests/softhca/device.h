/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - a device with its PD, and registered memory.
 */
#ifndef T_DEVICE_H
#define T_DEVICE_H

#include <stddef.h>

#include <infiniband/verbs.h>
#include <stdbool.h>

#define T_GRH 40 /* bytes in front of the payload in a UD receive */
#define T_FULL_ACCESS                                                                \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

struct t_dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr_ex attr;
	struct ibv_port_attr port;
	union ibv_gid gid; /* the GID of gid_index */
	uint8_t gid_index; /* on Ethernet the first entry of RoCE v2 */
	uint8_t port_num;
	bool roce; /* each path needs a GRH */
};

/* Returns the name of the device that is tested: that of TEST_DEVICE, or softhca0. */
const char *t_device_name(void);
/* Opens the device that TEST_DEVICE names, or else the first one, and allocates a PD. */
struct t_dev *t_open(void);
/* Opens the device with that index, counted from that one on. */
struct t_dev *t_open_at(int index);
/* Deallocates the PD and closes the device; fails if an object is left. */
void t_close(struct t_dev *dev);
/* Fixtures of a cmocka group or test: *state is a struct t_dev. */
int t_setup(void **state);
int t_teardown(void **state);

/* That device alone, for tests without a PD. */
extern struct ibv_context *t_ctx;
/* Fixtures of a cmocka group: open and close t_ctx. */
int t_context_setup(void **state);
int t_context_teardown(void **state);

struct t_buf {
	char *addr;
	size_t len;
	struct ibv_mr *mr;
};

/* Maps len zeroed bytes (page-aligned) and registers them in pd with the given access. */
struct t_buf t_buf_in(struct ibv_pd *pd, size_t len, int access);
/* Maps and registers memory in the device's PD, with full access. */
struct t_buf t_buf(struct t_dev *dev, size_t len);
void t_buf_free(struct t_buf *buf);
/* Returns the SGE of len bytes at off of the buffer. */
struct ibv_sge t_sge(const struct t_buf *buf, size_t off, size_t len);
/* Fills memory with a pattern that depends on seed and position. t_check() checks it, naming the
 * first byte that differs. */
void t_fill(void *p, size_t len, unsigned seed);
void t_check(const void *p, size_t len, unsigned seed);
/* Checks that all len bytes are c. */
void t_check_byte(const void *p, size_t len, int c);

#endif
