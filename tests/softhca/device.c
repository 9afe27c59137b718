/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - see device.h.
 */
#include "device.h"

#include <sys/mman.h>

#include "check.h"

struct t_dev *t_open_at(int index)
{
	struct t_dev *dev = calloc(1, sizeof(*dev));
	struct ibv_device **list;
	int n = 0;

	t_true(dev, "out of memory");
	list = ibv_get_device_list(&n);
	t_true(list && n > index, "no device %d: run this under softhca run", index);
	dev->ctx = ibv_open_device(list[index]);
	t_true(dev->ctx, "ibv_open_device: %s", strerror(errno));
	ibv_free_device_list(list);
	dev->port_num = 1;
	t_ok(ibv_query_device_ex(dev->ctx, NULL, &dev->attr));
	t_ok(ibv_query_port(dev->ctx, dev->port_num, &dev->port));
	dev->roce = dev->port.link_layer == IBV_LINK_LAYER_ETHERNET;
	dev->gid_index = dev->roce ? 1 : 0;
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
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)state;
	if (!list || !list[0])
		return -1;
	t_ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
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
