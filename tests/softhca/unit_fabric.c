/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_fabric.c - making and removing a fabric, its files, the arenas of its processes, and full
 * memory.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <endian.h>

#include "fixture.h"
#include "fabric/address.h"
#include "fabric/arena.h"
#include "fabric/proc.h"
#include "fabric/table.h"
#include "fabric/counters.h"

#define SKIPPED 77

static void arena_gives_zeroed_pages_apart(void **state)
{
	static const uint64_t sizes[] = {1, 4096, 5000, 40000, 65536, 70000, 1 << 20, 3 << 20};
	enum { N = 8 };
	uint64_t off[3 * N], i, j;
	char *mem;
	struct stat before, after;
	unsigned round;

	(void)state;
	fstat(u_fab.fd, &before);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 3 * N; i++) {
			uint64_t len = sizes[i % N];

			off[i] = shca_arena_alloc(&u_fab, (unsigned)u_slot, len);
			t_holds(off[i] && off[i] % 4096 == 0 && off[i] + len <= SHCA_ARENA);
			for (j = 0; j < i; j++)
				t_holds(off[j] + sizes[j % N] <= off[i] || off[i] + len <= off[j]);
			mem = shca_arena(&u_fab, (unsigned)u_slot, off[i], len);
			t_holds(mem != NULL);
			for (j = 0; j < len; j++)
				if (mem[j])
					t_fail("byte %lu of a block of %lu", j, len);
			memset(mem, 0xa5, len);
		}
		t_holds(atomic_load(&u_fab.hdr->procs[u_slot].arena_used) >= 3 * (4 << 20));
		for (i = 0; i < 3 * N; i++) {
			j = (i * 7 + round) % (3 * N);
			shca_arena_free(&u_fab, (unsigned)u_slot, off[j], sizes[j % N]);
		}
		t_eq(atomic_load(&u_fab.hdr->procs[u_slot].arena_used), 0);
	}
	/* Everything was freed, and so merged to big blocks and punched out, except blocks that
	 * share a page with page 0. */
	fstat(u_fab.fd, &after);
	t_holds(after.st_blocks - before.st_blocks <= 2 * 64 * 1024 / 512);
	t_eq(shca_arena_alloc(&u_fab, (unsigned)u_slot, SHCA_ARENA), 0);
	t_eq(shca_arena_alloc(&u_fab, (unsigned)u_slot, 0), 0);
}

static void addresses_name_hcas(void **state)
{
	union ibv_gid gid;
	unsigned i;

	(void)state;
	for (i = 0; i < u_fab.hdr->nhcas; i++) {
		const struct shca_hca *hca = &u_fab.hdr->hcas[i];

		gid.global.subnet_prefix = htobe64(SHCA_GID_PREFIX);
		gid.global.interface_id = htobe64(hca->guid);
		t_eq(shca_address_by_gid(u_fab.hdr, &gid), i);
		t_eq(shca_address_by_lid(u_fab.hdr, hca->lid), i);
		t_eq(hca->guid >> 32, 0x0002c903);
		gid.raw[13] ^= 1;
		t_eq(shca_address_by_gid(u_fab.hdr, &gid), -1);
		gid.raw[13] ^= 1;
		gid.raw[0] = 0xff;
		t_eq(shca_address_by_gid(u_fab.hdr, &gid), -1);
	}
	t_eq(i, 2);
	t_eq(shca_address_by_lid(u_fab.hdr, 0), -1);
	t_eq(shca_address_by_lid(u_fab.hdr, 3), -1);
}

/* Checks that on InfiniBand a path leads to its LID, and with a GRH only if that names the same
 * port. */
static void infiniband_paths_need_lids(void **state)
{
	struct shca_fabric_header *hdr = u_fab.hdr;
	struct ibv_ah_attr path = {.port_num = 1};
	enum ibv_gid_type type;

	(void)state;
	t_true(shca_gid_at(hdr, &hdr->hcas[1], 0, &path.grh.dgid, &type), "no GID");
	for (path.is_global = 0; path.is_global < 2; path.is_global++) {
		path.dlid = hdr->hcas[1].lid;
		t_eq(shca_address_by_path(hdr, &hdr->hcas[0], &path), 1);
		path.dlid = hdr->hcas[0].lid;
		t_eq(shca_address_by_path(hdr, &hdr->hcas[0], &path), path.is_global ? -1 : 0);
		path.dlid = 0;
		t_eq(shca_address_by_path(hdr, &hdr->hcas[0], &path), -1);
	}
}

/* Checks the addresses of Ethernet ports, which the fabric's ports are for this test: each address
 * has two GIDs. IPv4 addresses reach each other, and IPv6 addresses do. */
static void ethernet_addresses_name_hcas(void **state)
{
	enum { LINK_LOCAL, IPV4, IPV6 };
	struct shca_fabric_header *hdr = u_fab.hdr;
	struct ibv_ah_attr path = {.port_num = 1, .is_global = 1};
	enum ibv_gid_type type;
	union ibv_gid gid;

	(void)state;
	hdr->config.value[SHCA_O_LINK_LAYER] = SHCA_LINK_ETHERNET;
	for (unsigned i = 0; i < hdr->nhcas; i++) {
		for (unsigned k = 0; k < SHCA_GID_TBL_LEN; k++) {
			if (!shca_gid_at(hdr, &hdr->hcas[i], k, &gid, &type)) {
				t_eq(k, 6);
				break;
			}
			t_eq(shca_gid_index(hdr, &hdr->hcas[i], &gid, type), k);
			t_eq(shca_gid_index(hdr, &hdr->hcas[!i], &gid, type), -1);
			t_eq(shca_address_by_gid(hdr, &gid), i);
			path.grh.dgid = gid;
			for (unsigned from = 0; from < 7; from++) {
				path.grh.sgid_index = (uint8_t)from;
				t_eq(shca_address_by_path(hdr, &hdr->hcas[!i], &path),
				     from < 6 && (from / 2 == IPV4) == (k / 2 == IPV4) ? (int)i
										       : -1);
			}
			gid.raw[14] ^= 1;
			t_eq(shca_address_by_gid(hdr, &gid), -1);
		}
		t_eq(shca_address_by_lid(hdr, (uint16_t)(1 + i)), -1);
	}
	memset(&gid, 0, sizeof(gid));
	t_eq(shca_address_by_gid(hdr, &gid), -1);
	path.is_global = 0;
	t_eq(shca_address_by_path(hdr, &hdr->hcas[0], &path), -1);
	hdr->config.value[SHCA_O_LINK_LAYER] = SHCA_LINK_INFINIBAND;
}

static void has_line(const char *tree, const char *name, const char *line)
{
	char path[256], text[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", tree, name);
	file = fopen(path, "r");
	t_holds(file != NULL);
	t_holds(fgets(text, sizeof(text), file) != NULL);
	fclose(file);
	text[strcspn(text, "\n")] = '\0';
	t_str_eq(text, line);
}

static void files_are_ours_alone(void **state)
{
	char tree[160], path[256], guid[32];
	const struct shca_hca *hca = &u_fab.hdr->hcas[1];
	struct stat st;

	(void)state;
	t_eq(shca_fabric_sysfs_path(&u_fab, 2, tree, sizeof(tree)), -EINVAL);
	t_eq(shca_fabric_sysfs_path(&u_fab, 1, tree, 3), -ENAMETOOLONG);
	t_eq(shca_fabric_sysfs_path(&u_fab, 1, tree, sizeof(tree)), 0);
	snprintf(guid, sizeof(guid), "0002:c903:%04x:%04x", (unsigned)(hca->guid >> 16) & 0xffff,
		 (unsigned)hca->guid & 0xffff);
	has_line(tree, "class/infiniband/softhca0/node_type", "1: CA");
	has_line(tree, "class/infiniband/softhca0/node_guid", guid);
	has_line(tree, "class/infiniband/softhca0/ports/1/lid", "0x2");
	has_line(tree, "class/infiniband/softhca0/ports/1/state", "4: ACTIVE");
	has_line(tree, "class/infiniband/softhca0/ports/1/pkeys/0", "0xffff");
	has_line(tree, "class/infiniband/softhca0/ports/1/gid_attrs/types/0", "IB/RoCE v1");
	has_line(tree, "class/infiniband_verbs/abi_version", "6");
	has_line(tree, "class/infiniband_verbs/uverbs0/ibdev", "softhca0");
	t_eq(stat(u_dir, &st), 0);
	t_eq(st.st_mode & 0777, 0700);
	snprintf(path, sizeof(path), "%s/seg", u_dir);
	t_eq(stat(path, &st), 0);
	t_eq(st.st_mode & 0777, 0600);
	t_eq(fcntl(u_fab.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	for (unsigned i = 0; i < SHCA_C_COUNT; i++) {
		t_holds(shca_counter_names[i] != NULL);
		t_holds(shca_counter_help[i] != NULL);
	}
}

static void two_fabrics_and_their_ends(void **state)
{
	struct shca_config c = u_config(SHCA_O_NODES, 1);
	struct shca_fabric second;
	char dir[160], path[200];
	uint64_t magic = SHCA_MAGIC + (1ULL << 56);
	uint32_t number;
	void *e;
	int fd;

	(void)state;
	snprintf(dir, sizeof(dir), "%s-2", u_dir);
	t_eq(shca_fabric_attach(dir, &second, u_err, sizeof(u_err)), -ENOENT);
	t_holds(strstr(u_err, "softhca run") != NULL);
	t_eq(shca_fabric_create(dir, &c, "second", u_err, sizeof(u_err)), 0);
	t_eq(shca_fabric_create(dir, &c, "second", u_err, sizeof(u_err)), -EEXIST);
	t_eq(shca_fabric_attach(dir, &second, u_err, sizeof(u_err)), 0);
	e = u_make(u_hca, SHCA_MR, (unsigned)u_slot, NULL);
	shca_table_publish(e);
	number = shca_table_number(e);
	t_holds(u_findable(u_hca, SHCA_MR, number));
	t_holds(shca_table_find(&second, &second.hdr->hcas[0], SHCA_MR, number, &(uint32_t){0}) ==
		NULL);
	t_holds(second.hdr->seed != u_fab.hdr->seed);
	shca_fabric_detach(&second);

	/* A fabric of another version, and an unfinished one. */
	snprintf(path, sizeof(path), "%s/seg", dir);
	fd = open(path, O_RDWR);
	t_eq(pwrite(fd, &magic, sizeof(magic), 0), sizeof(magic));
	t_eq(shca_fabric_attach(dir, &second, u_err, sizeof(u_err)), -EPROTO);
	t_holds(strstr(u_err, "version") != NULL);
	magic = 0;
	t_eq(pwrite(fd, &magic, sizeof(magic), 0), sizeof(magic));
	t_eq(shca_fabric_attach(dir, &second, u_err, sizeof(u_err)), -EINVAL);
	close(fd);

	/* Files that don't belong to a fabric stay. */
	snprintf(path, sizeof(path), "%s/notes", dir);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	t_eq(shca_fabric_remove(dir), -ENOTEMPTY);
	t_eq(unlink(path), 0);
	t_eq(shca_fabric_remove(dir), 0);
	t_eq(access(dir, F_OK), -1);
	t_eq(shca_fabric_remove(dir), -ENOENT);

	c.value[SHCA_O_NODES] = 64;
	c.value[SHCA_O_DEVICES] = 2;
	t_eq(shca_fabric_create(dir, &c, "second", u_err, sizeof(u_err)), -EINVAL);
	t_eq(access(dir, F_OK), -1);
	/* Attached processes go on without the files. */
	t_eq(shca_fabric_remove(u_dir), 0);
	t_holds(u_findable(u_hca, SHCA_MR, number));
	t_holds(shca_arena_alloc(&u_fab, (unsigned)u_slot, 100000) != 0);
	t_eq(mkdir(u_dir, 0700), 0); /* for the teardown */
}

static void *attach_and_detach(void *arg)
{
	struct shca_fabric second;
	int *rc = arg;

	*rc = shca_fabric_attach(u_dir, &second, u_err, sizeof(u_err));
	if (!*rc)
		shca_fabric_detach(&second);
	return NULL;
}

/* Checks a fabric that a thread with a small stack attaches to, as a program's first verb may. */
static void attaching_takes_little_stack(void **state)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc = -1;

	(void)state;
	t_ok(pthread_attr_init(&attr));
	t_ok(pthread_attr_setstacksize(&attr, 128 << 10));
	t_ok(pthread_create(&thread, &attr, attach_and_detach, &rc));
	t_ok(pthread_join(thread, NULL));
	t_eq(rc, 0);
	pthread_attr_destroy(&attr);
}

/* Runs in a child with a mount namespace of its own. Returns the child's exit code. */
static int use_small_tmpfs(const char *dir)
{
	struct shca_config c = u_config(SHCA_O_NODES, 1);
	char sub[200];
	unsigned n;
	int slot;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=512k"))
		return SKIPPED;
	snprintf(sub, sizeof(sub), "%s/f", dir);
	if (shca_fabric_create(sub, &c, "small", u_err, sizeof(u_err)) != -ENOMEM ||
	    !strstr(u_err, "no space in"))
		return 1;
	if (access(sub, F_OK) == 0)
		return 2;
	if (mount(NULL, dir, NULL, MS_REMOUNT, "size=4m"))
		return 3;
	if (shca_fabric_create(sub, &c, "small", u_err, sizeof(u_err)) ||
	    shca_fabric_attach(sub, &u_fab, u_err, sizeof(u_err)))
		return 4;
	u_hca = &u_fab.hdr->hcas[0];
	slot = shca_proc_attach(&u_fab);
	/* Allocated memory can be written to, until there is no more. */
	for (n = 0; n < 10000; n++) {
		struct shca_qp_entry *qp = u_make(u_hca, SHCA_QP, (unsigned)slot, NULL);
		uint64_t off = qp ? shca_arena_alloc(&u_fab, (unsigned)slot, 20000) : 0;

		if (!off)
			break;
		memset((char *)qp + 8, 0xff, sizeof(*qp) - 8);
		memset(shca_arena(&u_fab, (unsigned)slot, off, 20000), 0xff, 20000);
	}
	return n > 50 && n < 500 && !shca_arena_alloc(&u_fab, (unsigned)slot, 1 << 20) ? 0 : 5;
}

static void full_memory_is_an_error_and_no_signal(void **state)
{
	char dir[] = "/tmp/unit_fabric.XXXXXX";
	int status;
	pid_t pid;

	(void)state;
	t_holds(mkdtemp(dir) != NULL);
	pid = fork();
	if (!pid)
		_exit(use_small_tmpfs(dir));
	t_eq(waitpid(pid, &status, 0), pid);
	rmdir(dir);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
		t_skip("mounting a small tmpfs needs more rights than we have");
	}
	t_eq(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FABRIC(arena_gives_zeroed_pages_apart),
		IN_FABRIC(addresses_name_hcas),
		IN_FABRIC(infiniband_paths_need_lids),
		IN_FABRIC(ethernet_addresses_name_hcas),
		IN_FABRIC(files_are_ours_alone),
		IN_FABRIC(two_fabrics_and_their_ends),
		IN_FABRIC(attaching_takes_little_stack),
		cmocka_unit_test(full_memory_is_an_error_and_no_signal),
	};

	alarm(120); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
