/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_symbols.c - softhca provides every public function of the loaded libibverbs, except pure
 * helpers. A missed function would take our objects for the real library's. Run it as `softhca run
 * -- test_symbols`.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* dlinfo() */
#endif
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "check.h"

/* Helpers that don't use devices: the real ones serve. */
static const char *const helpers[] = {
	"ibv_copy_ah_attr_from_kern", "ibv_copy_path_rec_from_kern",
	"ibv_copy_path_rec_to_kern",  "ibv_copy_qp_attr_from_kern",
	"ibv_event_type_str",         "ibv_node_type_str",
	"ibv_port_state_str",         "ibv_rate_to_mbps",
	"ibv_rate_to_mult",           "ibv_read_sysfs_file",
	"ibv_register_driver",        "ibv_wc_status_str",
	"mbps_to_ibv_rate",           "mult_to_ibv_rate",
};

/* Private functions that applications use all the same. */
static const char *const privates[] = {"ibv_query_gid_type"};

struct image {
	const char *base;
	const ElfW(Sym) * syms;
	const ElfW(Half) * versions;
	const char *strings;
	const char *verdefs;
	size_t nsyms, nverdefs;
};

static const ElfW(Shdr) * sections(const struct image *im, size_t *n)
{
	const ElfW(Ehdr) *eh = (const void *)im->base;

	*n = eh->e_shnum;
	return (const void *)(im->base + eh->e_shoff);
}

/* Finds the file that the dynamic linker loaded as libibverbs.so.1. */
static void load(struct image *im)
{
	void *handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
	const ElfW(Shdr) * sh;
	struct link_map *map;
	struct stat st;
	size_t n;
	int fd;

	t_holds(handle != NULL);
	t_eq(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	fd = open(map->l_name, O_RDONLY);
	t_holds(fd >= 0);
	t_eq(fstat(fd, &st), 0);
	im->base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	t_holds(im->base != MAP_FAILED);
	close(fd);
	sh = sections(im, &n);
	for (size_t i = 0; i < n; i++) {
		const void *data = im->base + sh[i].sh_offset;

		if (sh[i].sh_type == SHT_DYNSYM) {
			im->syms = data;
			im->nsyms = sh[i].sh_size / sizeof(ElfW(Sym));
			im->strings = im->base + sh[sh[i].sh_link].sh_offset;
		} else if (sh[i].sh_type == SHT_GNU_versym) {
			im->versions = data;
		} else if (sh[i].sh_type == SHT_GNU_verdef) {
			im->verdefs = data;
			im->nverdefs = sh[i].sh_info;
		}
	}
	t_holds(im->syms != NULL);
	t_holds(im->versions != NULL);
	t_holds(im->verdefs != NULL);
}

static const char *version_name(const struct image *im, size_t sym)
{
	const unsigned index = im->versions[sym] & 0x7fff;
	const ElfW(Verdef) *vd = (const void *)im->verdefs;

	for (size_t i = 0; i < im->nverdefs; i++) {
		const ElfW(Verdaux) *aux = (const void *)((const char *)vd + vd->vd_aux);

		if (vd->vd_ndx == index)
			return im->strings + aux->vda_name;
		vd = (const void *)((const char *)vd + vd->vd_next);
	}
	return "";
}

static bool is_helper(const char *name)
{
	for (size_t i = 0; i < sizeof(helpers) / sizeof(*helpers); i++)
		if (strcmp(helpers[i], name) == 0)
			return true;
	return false;
}

static const char *provider_of(void *address)
{
	Dl_info info;

	return dladdr(address, &info) ? info.dli_fname : "";
}

/* Returns the library that defines the name. */
static const char *provider(const char *name)
{
	void *address = dlsym(RTLD_DEFAULT, name);

	return address ? provider_of(address) : "";
}

static void test_public(void **state)
{
	struct image im = {0};
	int ours = 0;
	int missed = 0;

	(void)state;
	load(&im);
	for (size_t i = 0; i < im.nsyms; i++) {
		const ElfW(Sym) *sym = &im.syms[i];
		const char *name = im.strings + sym->st_name;

		if (sym->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(sym->st_info) != STT_FUNC)
			continue;
		if (strncmp(version_name(&im, i), "IBVERBS_1.", 10) != 0 || is_helper(name))
			continue;
		if (strstr(provider(name), "libsofthca")) {
			ours++;
		} else {
			print_error("%s is not interposed\n", name);
			missed++;
		}
	}
	t_eq(missed, 0);
	/* libibverbs 44 has 95 definitions of 59 names, so a wrong walk would find fewer. */
	t_holds(ours >= 59);
}

static void test_private(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(privates) / sizeof(*privates); i++)
		t_holds(strstr(provider(privates[i]), "libsofthca") != NULL);
}

static void test_helpers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(helpers) / sizeof(*helpers); i++)
		t_holds(strstr(provider(helpers[i]), "libsofthca") == NULL);
	t_str_eq(ibv_wc_status_str(IBV_WC_RNR_RETRY_EXC_ERR), "RNR retry counter exceeded");
	t_eq(ibv_rate_to_mult(IBV_RATE_10_GBPS), 4);
}

/* Checks that this program's references, which name a version (IBVERBS_1.1), are satisfied by our
 * library, which has none. */
static void test_references(void **state)
{
	(void)state;
	t_holds(strstr(provider_of((void *)ibv_query_device), "libsofthca") != NULL);
	t_holds(strstr(provider_of((void *)ibv_create_qp), "libsofthca") != NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_public),
		cmocka_unit_test(test_private),
		cmocka_unit_test(test_helpers),
		cmocka_unit_test(test_references),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
