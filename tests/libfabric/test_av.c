/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Address vectors without traffic: inserting addresses, names and services, finding, printing and
 * removing them; events of insertions.
 *
 * test_av, under "softhca run"
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "util.h"

#define ADDR 16 /* bytes of an address */

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
} all;

/* Opens a vector of addresses in this format; FI_FORMAT_UNSPEC: the provider's own. */
static void open_format(uint32_t format, enum fi_av_type type, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr attr = {.type = type, .flags = flags};

	t_holds(hints);
	hints->ep_attr->type = FI_EP_RDM;
	hints->addr_format = format;
	hints->fabric_attr->prov_name = strdup("tupleq");
	t_ok(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &all.info));
	fi_freeinfo(hints);
	t_ok(fi_fabric(all.info->fabric_attr, &all.fabric, NULL));
	t_ok(fi_domain(all.fabric, all.info, &all.domain, NULL));
	t_ok(fi_av_open(all.domain, &attr, &all.av, NULL));
	t_true(attr.type != FI_AV_UNSPEC, "the type was not chosen");
}

static void open_all(enum fi_av_type type, uint64_t flags)
{
	open_format(FI_FORMAT_UNSPEC, type, flags);
}

static void close_all(void)
{
	t_ok(fi_close(&all.av->fid));
	t_ok(fi_close(&all.domain->fid));
	t_ok(fi_close(&all.fabric->fid));
	fi_freeinfo(all.info);
}

/* An address that endpoint `n` of this process could have. */
static void make_addr(unsigned char addr[ADDR], unsigned n)
{
	char text[64];
	fi_addr_t index;
	size_t len = ADDR;

	snprintf(text, sizeof(text), "fi_tupleq://1:%x/%x", 100 + n, n);
	t_eq(fi_av_insertsvc(all.av, text, NULL, &index, 0, NULL), 1);
	t_ok(fi_av_lookup(all.av, index, addr, &len));
	t_eq(len, ADDR);
	t_ok(fi_av_remove(all.av, &index, 1, 0));
}

static void indices(void **state)
{
	unsigned char addrs[3000][ADDR], found[ADDR];
	fi_addr_t index[3000], again;
	size_t len;

	(void)state;
	open_all(FI_AV_UNSPEC, 0);
	for (unsigned i = 0; i < 3000; i++)
		make_addr(addrs[i], i);
	t_eq(fi_av_insert(all.av, addrs, 3000, index, FI_MORE, NULL), 3000);
	for (unsigned i = 0; i < 3000; i++) {
		t_eq(index[i], i);
		len = sizeof(found);
		t_ok(fi_av_lookup(all.av, index[i], found, &len));
		t_true(!memcmp(found, addrs[i], ADDR), "address %u is another one", i);
	}
	/* The first one that is free is used again. */
	t_ok(fi_av_remove(all.av, &index[5], 2, 0));
	len = sizeof(found);
	t_eq(fi_av_lookup(all.av, index[5], found, &len), -FI_EINVAL);
	t_eq(fi_av_remove(all.av, &index[5], 1, 0), -FI_EINVAL);
	t_eq(fi_av_insert(all.av, addrs[5], 1, &again, 0, NULL), 1);
	t_eq(again, index[5]);
	/* An address may be there twice. */
	t_eq(fi_av_insert(all.av, addrs[0], 1, &again, 0, NULL), 1);
	t_true(again != index[0], "two insertions have one index");
	t_ok(fi_av_remove(all.av, &index[0], 1, 0));
	len = 4;
	t_ok(fi_av_lookup(all.av, again, found, &len));
	t_eq(len, ADDR);
	t_true(!memcmp(found, addrs[0], 4), "the beginning of an address is another one");
	t_eq(fi_av_lookup(all.av, FI_ADDR_UNSPEC, found, &len), -FI_EINVAL);
	t_eq(fi_av_lookup(all.av, 1u << 30, found, &len), -FI_EINVAL);
	close_all();
}

static void texts(void **state)
{
	unsigned char addr[ADDR], again[ADDR];
	char text[64] = "", small[8];
	size_t len = sizeof(text), need;
	fi_addr_t index;

	(void)state;
	open_all(FI_AV_TABLE, 0);
	make_addr(addr, 7);
	t_true(fi_av_straddr(all.av, addr, text, &len) == text, "another buffer is returned");
	t_true(!strcmp(text, "fi_tupleq://1:6b/7"), "the text is %s", text);
	t_eq(len, strlen(text) + 1);
	need = sizeof(small);
	fi_av_straddr(all.av, addr, small, &need);
	t_eq(need, len);
	t_true(!strcmp(small, "fi_tupl"), "the text is %s", small);
	t_eq(fi_av_insertsvc(all.av, text, NULL, &index, 0, NULL), 1);
	len = sizeof(again);
	t_ok(fi_av_lookup(all.av, index, again, &len));
	t_true(!memcmp(addr, again, ADDR), "the text is another address's");
	t_eq(fi_av_insertsvc(all.av, "fi_tupleq://1:6b/7x", NULL, &index, 0, NULL), -FI_EINVAL);
	t_eq(fi_av_insertsvc(all.av, NULL, "7", &index, 0, NULL), -FI_EINVAL);
	close_all();
}

/* With FI_ADDR_STR an address is a text, and vectors take arrays of pointers to texts. */
static void strings(void **state)
{
	const char *const texts[] = {"fi_tupleq://1:6b/7", "fi_tupleq://1:6b", NULL,
				     "fi_tupleq://10.0.0.9:1099/service"};
	char text[64] = "", small[8];
	int errors[4];
	fi_addr_t index[4];
	size_t len;

	(void)state;
	open_format(FI_ADDR_STR, FI_AV_TABLE, 0);
	t_eq(all.info->addr_format, FI_ADDR_STR);
	t_eq(all.info->src_addrlen, strlen(all.info->src_addr) + 1);
	t_eq(fi_av_insert(all.av, texts, 4, index, FI_SYNC_ERR, errors), 2);
	for (unsigned i = 0; i < 4; i++) {
		bool valid = i == 0 || i == 3;

		t_eq(errors[i], valid ? 0 : FI_EINVAL);
		t_true((index[i] != FI_ADDR_NOTAVAIL) == valid, "index %u is wrong", i);
		if (!valid)
			continue;
		len = sizeof(text);
		t_ok(fi_av_lookup(all.av, index[i], text, &len));
		t_eq(len, strlen(texts[i]) + 1);
		t_true(!strcmp(text, texts[i]), "the text is %s", text);
		len = sizeof(text);
		t_true(fi_av_straddr(all.av, texts[i], text, &len) == text, "another buffer");
		t_eq(len, strlen(texts[i]) + 1);
		t_true(!strcmp(text, texts[i]), "the text is %s", text);
	}
	len = sizeof(small);
	t_ok(fi_av_lookup(all.av, index[0], small, &len));
	t_eq(len, strlen(texts[0]) + 1);
	t_true(!strcmp(small, "fi_tupl"), "the text is %s", small);
	t_eq(fi_av_insertsvc(all.av, texts[0], NULL, index, 0, NULL), 1);
	close_all();
}

static void services(void **state)
{
	unsigned char addr[ADDR];
	char text[64];
	fi_addr_t indices[6];
	size_t len;

	(void)state;
	open_all(FI_AV_TABLE, 0);
	t_eq(fi_av_insertsym(all.av, "10.0.0.9", 3, "1099", 2, indices, FI_NUMERICHOST, NULL), 6);
	for (unsigned i = 0; i < 6; i++) {
		char expected[64];

		snprintf(expected, sizeof(expected), "fi_tupleq://10.0.0.%u:%u/service", 9 + i / 2,
			 1099 + i % 2);
		len = sizeof(addr);
		t_ok(fi_av_lookup(all.av, indices[i], addr, &len));
		len = sizeof(text);
		fi_av_straddr(all.av, addr, text, &len);
		t_true(!strcmp(text, expected), "%s isn't %s", text, expected);
	}
	t_eq(fi_av_insertsvc(all.av, text, NULL, indices, 0, NULL), 1);
	t_eq(fi_av_insertsvc(all.av, "no.such.host.invalid", "1", indices, FI_NUMERICHOST, NULL),
	     -FI_ENODATA);
	t_eq(fi_av_insertsym(all.av, "10.0.0.9", 0, "1", 1, indices, 0, NULL), -FI_EINVAL);
	t_eq(fi_av_insertsym(all.av, "localhost", 2, "1", 1, indices, 0, NULL), -FI_EINVAL);
	close_all();
}

static void wrong(void **state)
{
	struct fi_av_attr named = {.name = "name"}, scalable = {.rx_ctx_bits = 2};
	unsigned char addrs[3][ADDR];
	int errors[3];
	struct fid_av *av;
	fi_addr_t index[3];

	(void)state;
	open_all(FI_AV_MAP, 0);
	for (unsigned i = 0; i < 3; i++)
		make_addr(addrs[i], i);
	addrs[1][0] ^= 1;
	t_eq(fi_av_insert(all.av, addrs, 3, index, FI_SYNC_ERR, errors), 2);
	t_eq(errors[0], 0);
	t_eq(errors[1], FI_EINVAL);
	t_eq(errors[2], 0);
	t_eq(index[1], FI_ADDR_NOTAVAIL);
	t_eq(fi_av_insert(all.av, addrs, 3, NULL, 0, NULL), 2);
	t_eq(fi_av_insert(all.av, addrs, 3, index, FI_PEEK, NULL), -FI_EINVAL);
	t_eq(fi_av_insert(all.av, NULL, 3, index, 0, NULL), -FI_EINVAL);
	t_eq(fi_av_insert(all.av, NULL, 0, NULL, 0, NULL), 0);
	t_eq(fi_av_open(all.domain, &named, &av, NULL), -FI_ENOSYS);
	t_eq(fi_av_open(all.domain, &scalable, &av, NULL), -FI_ENOSYS);
	close_all();
}

static void events(void **state)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fi_eq_err_entry error = {0};
	struct fi_eq_entry entry;
	unsigned char addrs[2][ADDR];
	fi_addr_t index[2];
	struct fid_eq *eq;
	uint32_t event;
	int context;

	(void)state;
	open_all(FI_AV_TABLE, 0);
	make_addr(addrs[0], 0);
	memset(addrs[1], 0, ADDR);
	close_all();
	open_all(FI_AV_TABLE, FI_EVENT);
	t_eq(fi_av_insert(all.av, addrs, 2, index, 0, &context), -FI_EINVAL);
	t_ok(fi_eq_open(all.fabric, &attr, &eq, NULL));
	/* As fi_av_bind(), which libfabric 2 calls deprecated. */
	t_ok(all.av->fid.ops->bind(&all.av->fid, &eq->fid, 0));
	t_eq(fi_close(&eq->fid), -FI_EBUSY);
	t_eq(fi_av_insert(all.av, addrs, 2, index, 0, &context), 0);
	t_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	t_eq(fi_eq_readerr(eq, &error, 0), (ssize_t)sizeof(error));
	t_eq(error.err, FI_EINVAL);
	t_eq(error.data, 1);
	t_true(error.context == &context, "the error is another insertion's");
	t_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), (ssize_t)sizeof(entry));
	t_eq(event, FI_AV_COMPLETE);
	t_eq(entry.data, 1);
	t_true(entry.fid == &all.av->fid && entry.context == &context, "another insertion's");
	t_ok(fi_close(&all.av->fid));
	t_ok(fi_close(&eq->fid));
	t_ok(fi_close(&all.domain->fid));
	t_ok(fi_close(&all.fabric->fid));
	fi_freeinfo(all.info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(indices), cmocka_unit_test(texts),  cmocka_unit_test(services),
		cmocka_unit_test(wrong),   cmocka_unit_test(events), cmocka_unit_test(strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
