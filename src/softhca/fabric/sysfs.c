/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysfs.c - writes the files that the kernel would show below /sys/class/infiniband{,_verbs,_mad}.
 */
#include "sysfs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "address.h"

#define TREE_LEN (sizeof(((struct shca_fabric_header *)0)->dir) + 16)

/* Makes all directories of `path` below its first `base` bytes. */
static int make_dirs(char *path, size_t base)
{
	char *slash;

	for (slash = strchr(path + base, '/'); slash; slash = strchr(slash + 1, '/')) {
		int rc;

		*slash = '\0';
		rc = mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (rc)
			return rc;
	}
	return 0;
}

/* A directory that is being filled. */
struct sysdir {
	int rc; /* first error; nothing is done after it */
	char tree[TREE_LEN];
	char sub[96]; /* path below the tree */
};

/* Writes a line into file `name` of the directory. */
static void __attribute__((format(printf, 3, 4)))
put(struct sysdir *dir, const char *name, const char *format, ...)
{
	char path[TREE_LEN + 256], text[128];
	va_list ap;
	int fd, n;

	if (dir->rc)
		return;
	snprintf(path, sizeof(path), "%s/%s/%s", dir->tree, dir->sub, name);
	dir->rc = make_dirs(path, strlen(dir->tree) + 1);
	if (dir->rc)
		return;
	va_start(ap, format);
	n = vsnprintf(text, sizeof(text) - 1, format, ap);
	va_end(ap);
	if (n > (int)sizeof(text) - 2)
		n = (int)sizeof(text) - 2;
	text[n++] = '\n';
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0) {
		dir->rc = -errno;
		return;
	}
	errno = EIO;
	if (write(fd, text, (size_t)n) != n)
		dir->rc = -errno;
	close(fd);
}

/* Writes a GUID as sysfs shows it: 0002:c903:1234:5678. */
static void guid_text(uint64_t guid, char *buf, size_t len)
{
	snprintf(buf, len, "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48),
		 (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
		 (unsigned)guid & 0xffff);
}

static void put_gids(struct sysdir *dir, const struct shca_fabric_header *hdr,
		     const struct shca_hca *hca)
{
	char name[64], prefix[24], guid[24];
	enum ibv_gid_type type;
	union ibv_gid gid;

	for (unsigned i = 0; shca_gid_at(hdr, hca, i, &gid, &type); i++) {
		guid_text(be64toh(gid.global.subnet_prefix), prefix, sizeof(prefix));
		guid_text(be64toh(gid.global.interface_id), guid, sizeof(guid));
		snprintf(name, sizeof(name), "ports/1/gids/%u", i);
		put(dir, name, "%s:%s", prefix, guid);
		snprintf(name, sizeof(name), "ports/1/gid_attrs/types/%u", i);
		put(dir, name, type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
	}
}

static void put_port(struct sysdir *dir, const struct shca_fabric_header *hdr,
		     const struct shca_hca *hca)
{
	bool ethernet = shca_is_ethernet(hdr);
	char name[64];
	unsigned i;

	put(dir, "ports/1/state", "4: ACTIVE");
	put(dir, "ports/1/phys_state", "5: LinkUp");
	put(dir, "ports/1/link_layer", ethernet ? "Ethernet" : "InfiniBand");
	put(dir, "ports/1/rate", "%s", shca_config_port_speed(&hdr->config)->text);
	put(dir, "ports/1/cap_mask", "0x%08x", ethernet ? SHCA_CAPS_ETH : SHCA_CAPS_IB);
	put(dir, "ports/1/lid", "0x%x", hca->lid);
	put(dir, "ports/1/lid_mask_count", "0");
	put(dir, "ports/1/sm_lid", ethernet ? "0x0" : "0x1");
	put(dir, "ports/1/sm_sl", "0");
	put_gids(dir, hdr, hca);
	for (i = 0; i < hca->npkeys; i++) {
		snprintf(name, sizeof(name), "ports/1/pkeys/%u", i);
		put(dir, name, "0x%04x", hca->pkeys[i]);
	}
}

/* Shows vendor and part as a device query does. Mellanox has another number as a maker of PCI
 * devices. */
static void put_kind(struct sysdir *dir, const struct shca_fabric_header *hdr)
{
	unsigned vendor = (unsigned)hdr->config.value[SHCA_O_VENDOR_ID];
	unsigned part = (unsigned)hdr->config.value[SHCA_O_PART_ID];

	if (vendor == SHCA_MELLANOX)
		put(dir, "hca_type", "MT%u", part);
	else
		put(dir, "hca_type", "softhca");
	put(dir, "device/vendor", "0x%04x", vendor == SHCA_MELLANOX ? 0x15b3 : vendor);
	put(dir, "device/device", "0x%04x", part);
}

static void put_hca(struct sysdir *dir, const struct shca_fabric_header *hdr,
		    const struct shca_hca *hca)
{
	char guid[24];

	snprintf(dir->sub, sizeof(dir->sub), "class/infiniband/%s", hca->name);
	guid_text(hca->guid, guid, sizeof(guid));
	put(dir, "node_type", "1: CA");
	put(dir, "node_guid", "%s", guid);
	put(dir, "sys_image_guid", "%s", guid);
	put(dir, "node_desc", "node%u %s", hca->node, hca->name);
	put(dir, "fw_ver", "%s", SHCA_FW_VER);
	put(dir, "hw_rev", "0");
	put(dir, "board_id", "%s", SHCA_BOARD_ID);
	put_kind(dir, hdr);
	put(dir, "device/numa_node", "-1");
	put_port(dir, hdr, hca);

	snprintf(dir->sub, sizeof(dir->sub), "class/infiniband_verbs/uverbs%u", hca->device);
	put(dir, "ibdev", "%s", hca->name);
	put(dir, "abi_version", "1");
	put(dir, "dev", "231:%u", 192u + hca->device);
}

int shca_sysfs_make(const struct shca_fabric_header *hdr)
{
	struct sysdir dir = {.rc = 0};
	unsigned i;

	for (i = 0; i < hdr->nhcas && !dir.rc; i++) {
		const struct shca_hca *hca = &hdr->hcas[i];

		snprintf(dir.tree, sizeof(dir.tree), "%s/sys.%u", hdr->dir, hca->node);
		if (hca->device == 0) {
			if (mkdir(dir.tree, 0700))
				return -errno;
			snprintf(dir.sub, sizeof(dir.sub), "class/infiniband_verbs");
			put(&dir, "abi_version", "%d", SHCA_ABI);
			/* There are no devices for management datagrams; libibumad shows ports. */
			snprintf(dir.sub, sizeof(dir.sub), "class/infiniband_mad");
			put(&dir, "abi_version", "%d", SHCA_UMAD_ABI);
			snprintf(dir.sub, sizeof(dir.sub), "class/misc/rdma_cm");
			put(&dir, "abi_version", "%d", RDMA_USER_CM_ABI_VERSION);
		}
		put_hca(&dir, hdr, hca);
	}
	return dir.rc;
}
