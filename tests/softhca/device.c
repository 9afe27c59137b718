/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - see device.h.
 */
#include "device.h"

#include <sys/mman.h>

#include "check.h"

const char *t_device_name(void)
{
	const char *name = getenv("TEST_DEVICE");

	return name ? name : "softhca0";
}

/* Opens the index-th device from the one on that TEST_DEVICE names, or else from the first one on.
 * Returns NULL with errno. */
static struct ibv_context *open_context(int index)
{
	const char *name = getenv("TEST_DEVICE");
	struct ibv_context *ctx = NULL;
	int n = 0, first = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	while (name && list && first < n && strcmp(ibv_get_device_name(list[first]), name))
		first++;
	errno = ENODEV;
	if (list && first + index < n)
		ctx = ibv_open_device(list[first + index]);
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

/* Returns the first GID of RoCE version 2. */
static uint8_t roce_gid(struct t_dev *dev)
{
	struct ibv_gid_entry entry;

	for (uint32_t i = 0; i < UINT8_MAX; i++)
		if (!ibv_query_gid_ex(dev->ctx, dev->port_num, i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2)
			return (uint8_t)i;
	t_fail("the port has no GID of RoCE v2");
	return 0;
}

struct t_dev *t_open_at(int index)
{
	struct t_dev *dev = calloc(1, sizeof(*dev));

	t_true(dev, "out of memory");
	dev->ctx = open_context(index);
	t_true(dev->ctx, "device %d can't be opened (%s): run this under softhca run", index,
	       strerror(errno));
	dev->port_num = 1;
	t_ok(ibv_query_device_ex(dev->ctx, NULL, &dev->attr));
	t_ok(ibv_query_port(dev->ctx, dev->port_num, &dev->port));
	dev->roce = dev->port.link_layer == IBV_LINK_LAYER_ETHERNET;
	dev->gid_index = dev->roce ? roce_gid(dev) : 0;
	t_ok(ibv_query_gid(dev->ctx, dev->port_num, dev->gid_index, &dev->gid));
	dev->pd = ibv_alloc_pd(dev->ctx);
	t_true(dev->pd, "ibv_alloc_pd: %s", strerror(errno));
	return dev;
}

struct t_dev *t_open(void)
{
	return t_open_at(0);
}

void t_close(struct t_dev *dev)
{
	t_ok(ibv_dealloc_pd(dev->pd));
	t_ok(ibv_close_device(dev->ctx));
	free(dev);
}

int t_setup(void **state)
{
	*state = t_open();
	return 0;
}

int t_teardown(void **state)
{
	t_close(*state);
	return 0;
}

struct ibv_context *t_ctx;

int t_context_setup(void **state)
{
	(void)state;
	t_ctx = open_context(0);
	return t_ctx ? 0 : -1;
}

int t_context_teardown(void **state)
{
	(void)state;
	return t_ctx ? ibv_close_device(t_ctx) : 0;
}

struct t_buf t_buf_in(struct ibv_pd *pd, size_t len, int access)
{
	struct t_buf b = {.len = len};

	b.addr = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	t_true(b.addr != MAP_FAILED, "mmap of %zu bytes: %s", len, strerror(errno));
	b.mr = ibv_reg_mr(pd, b.addr, len, (unsigned)access);
	t_true(b.mr, "ibv_reg_mr of %zu bytes: %s", len, strerror(errno));
	return b;
}

struct t_buf t_buf(struct t_dev *dev, size_t len)
{
	return t_buf_in(dev->pd, len, T_FULL_ACCESS);
}

void t_buf_free(struct t_buf *buf)
{
	t_ok(ibv_dereg_mr(buf->mr));
	munmap(buf->addr, buf->len);
	buf->addr = NULL;
}

struct ibv_sge t_sge(const struct t_buf *buf, size_t off, size_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)buf->addr + off, .length = (uint32_t)len, .lkey = buf->mr->lkey};
}

static unsigned char pattern(size_t i, unsigned seed)
{
	uint64_t x = (i / 8 + 1) * 0x9e3779b97f4a7c15u + seed * 0xc2b2ae3d27d4eb4fu;

	return (unsigned char)(x >> (8 * (i & 7)));
}

/* t_check() compares pieces of this size, which costs less than single bytes, above all under a
 * sanitizer. */
#define PIECE 4096

static size_t make_piece(unsigned char *piece, size_t at, size_t len, unsigned seed)
{
	size_t n = len - at < PIECE ? len - at : PIECE;

	for (size_t i = 0; i < n; i++)
		piece[i] = pattern(at + i, seed);
	return n;
}

void t_fill(void *p, size_t len, unsigned seed)
{
	unsigned char piece[PIECE];

	for (size_t at = 0; at < len;) {
		size_t n = make_piece(piece, at, len, seed);

		memcpy((char *)p + at, piece, n);
		at += n;
	}
}

void t_check(const void *p, size_t len, unsigned seed)
{
	unsigned char piece[PIECE];
	const unsigned char *c = p;

	for (size_t at = 0; at < len;) {
		size_t n = make_piece(piece, at, len, seed);
		bool differs = memcmp(c + at, piece, n) != 0;

		for (size_t i = 0; differs && i < n; i++)
			t_true(c[at + i] == piece[i], "byte %zu of %zu is 0x%02x, not 0x%02x",
			       at + i, len, c[at + i], piece[i]);
		at += n;
	}
}

void t_check_byte(const void *p, size_t len, int c)
{
	const unsigned char *b = p;

	for (size_t i = 0; i < len; i++)
		t_true(b[i] == (unsigned char)c, "byte %zu of %zu is 0x%02x, not 0x%02x", i, len,
		       b[i], (unsigned)c);
}
