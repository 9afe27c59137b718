/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sysfs.c - writes the files that the kernel would show below /sys/class/infiniband{,_verbs,_mad},
 * and below /sys/class/net for the interfaces of the HCAs.
 */
#include "sysfs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "address.h"

#define IPOIB_HEADER 4   /* RFC 4391, 6 */
#define ROCE_HEADERS 104 /* an interface of 4200 bytes, for packets of 4096, is usual */

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
	char name[64], prefix[24], guid[24], interface[IF_NAMESIZE];
	enum ibv_gid_type type;
	union ibv_gid gid;

	shca_interface_name(hdr, hca, interface);
	for (unsigned i = 0; shca_gid_at(hdr, hca, i, &gid, &type); i++) {
		guid_text(be64toh(gid.global.subnet_prefix), prefix, sizeof(prefix));
		guid_text(be64toh(gid.global.interface_id), guid, sizeof(guid));
		snprintf(name, sizeof(name), "ports/1/gids/%u", i);
		put(dir, name, "%s:%s", prefix, guid);
		snprintf(name, sizeof(name), "ports/1/gid_attrs/types/%u", i);
		put(dir, name, type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
		if (!shca_is_ethernet(hdr))
			continue;
		snprintf(name, sizeof(name), "ports/1/gid_attrs/ndevs/%u", i);
		put(dir, name, "%s", interface);
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

	put(dir, "device/vendor", "0x%04x", vendor == SHCA_MELLANOX ? 0x15b3 : vendor);
	put(dir, "device/device", "0x%04x", (unsigned)hdr->config.value[SHCA_O_PART_ID]);
	put(dir, "device/numa_node", "-1");
}

static void put_type(struct sysdir *dir, const struct shca_fabric_header *hdr)
{
	if (hdr->config.value[SHCA_O_VENDOR_ID] == SHCA_MELLANOX)
		put(dir, "hca_type", "MT%u", (unsigned)hdr->config.value[SHCA_O_PART_ID]);
	else
		put(dir, "hca_type", "softhca");
}

/* Writes the address of an interface: a MAC address, or that of IPoIB (RFC 4391, 9.1.1), which has
 * no queue pair here. */
static void put_address(struct sysdir *dir, const struct shca_fabric_header *hdr,
			const struct shca_hca *hca)
{
	uint8_t bytes[4 + sizeof(union ibv_gid)] = {0};
	unsigned len = shca_is_ethernet(hdr) ? 6 : sizeof(bytes);
	char text[3 * sizeof(bytes) + 1];
	enum ibv_gid_type type;
	union ibv_gid gid;

	if (shca_is_ethernet(hdr)) {
		shca_mac(hca, bytes);
	} else {
		shca_gid_at(hdr, hca, 0, &gid, &type);
		memcpy(bytes + 4, gid.raw, sizeof(gid));
	}
	for (unsigned i = 0; i < len; i++)
		snprintf(text + 3 * (size_t)i, 4, "%02x:", bytes[i]);
	text[3 * (size_t)len - 1] = '\0';
	put(dir, "address", "%s", text);
	put(dir, "addr_len", "%u", len);
}

/* Returns the longest packet of an interface: on InfiniBand it leaves room for a header of IPoIB,
 * and on Ethernet it is the usual one that has room for packets of the port. */
static unsigned interface_mtu(const struct shca_fabric_header *hdr)
{
	unsigned mtu = 256u << (hdr->config.value[SHCA_O_MTU]);

	if (!shca_is_ethernet(hdr))
		return mtu - IPOIB_HEADER;
	return mtu <= 1024 ? 1500 : mtu + ROCE_HEADERS;
}

/* Writes the directory of an interface, as far as programs look there. */
static void put_interface(struct sysdir *dir, const struct shca_fabric_header *hdr,
			  const struct shca_hca *hca)
{
	const bool ethernet = shca_is_ethernet(hdr);
	char name[IF_NAMESIZE], of_device[64];

	shca_interface_name(hdr, hca, name);
	snprintf(dir->sub, sizeof(dir->sub), "class/net/%s", name);
	put_address(dir, hdr, hca);
	put(dir, "carrier", "1");
	put(dir, "dev_id", "0x0");
	put(dir, "dev_port", "0");
	put(dir, "duplex", "full");
	put(dir, "flags", "0x%x", IFF_UP | IFF_BROADCAST | IFF_MULTICAST);
	put(dir, "ifindex", "%u", SHCA_INTERFACE + hca->device);
	put(dir, "mtu", "%u", interface_mtu(hdr));
	put(dir, "operstate", "up");
	put(dir, "speed", "%ld",
	    strtol(shca_config_port_speed(&hdr->config)->text, NULL, 10) * 1000);
	put(dir, "type", "%u", ethernet ? ARPHRD_ETHER : ARPHRD_INFINIBAND);
	put_kind(dir, hdr);
	snprintf(of_device, sizeof(of_device), "device/infiniband/%s/node_type", hca->name);
	put(dir, of_device, "1: CA");

	/* Scripts go from the adapter to its interface by the folder of the device. */
	snprintf(dir->sub, sizeof(dir->sub), "class/infiniband/%s/device/net/%s", hca->name, name);
	put(dir, "dev_port", "0");
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
	put_type(dir, hdr);
	put_kind(dir, hdr);
	put_port(dir, hdr, hca);

	snprintf(dir->sub, sizeof(dir->sub), "class/infiniband_verbs/uverbs%u", hca->device);
	put(dir, "ibdev", "%s", hca->name);
	put(dir, "abi_version", "1");
	put(dir, "dev", "231:%u", 192u + hca->device);
	put_interface(dir, hdr, hca);
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
