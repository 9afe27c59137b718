/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_net.c - the interfaces of a node's HCAs, as sockets see them. getifaddrs() lists them. TCP
 * and UDP to their IPv4 addresses, 10.77.x.y, go to 127.77.x.y, which the kernel takes for this
 * machine, so a program that has both sockets and librdmacm needs one address of its peer. Traffic
 * to their global IPv6 addresses goes to the same places, as IPv6 maps them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "verbs.h"

#include <endian.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "clock/next.h"
#include "cm/route.h"
#include "fabric/address.h"

#define SUBNET_BITS 16
#define LOOPBACK    (0x7f000000u | (SHCA_IPV4_BASE & 0x00ff0000u)) /* 127.77.0.0 */

#define FUNCTIONS(FN)                                                        \
	FN(int, getifaddrs, (struct ifaddrs * *list))                        \
	FN(void, freeifaddrs, (struct ifaddrs * list))                       \
	FN(unsigned, if_nametoindex, (const char *name))                     \
	FN(char *, if_indextoname, (unsigned index, char *name))             \
	FN(int, connect, (int fd, const struct sockaddr *to, socklen_t len)) \
	FN(int, bind, (int fd, const struct sockaddr *at, socklen_t len))

NEXT_FUNCTIONS(FUNCTIONS)

/* ---------------------------------------------------------------- interfaces */

/* An address of an interface, in a list of getifaddrs(). */
struct entry {
	struct ifaddrs ifaddrs;
	char name[IF_NAMESIZE];
	union shca_cm_address address, mask, broadcast;
};

/* Tells our part of a list, which is its beginning and one piece of memory, from the C library's.
 */
static const char ours;

static bool has_fabric(void)
{
	const char *fabric = getenv(SHCA_ENV_FABRIC);

	return fabric && *fabric;
}

static void fill_entry(struct entry *entry, const struct shca_fabric_header *hdr, unsigned hca,
		       enum shca_route_kind kind)
{
	struct ifaddrs *ifaddrs = &entry->ifaddrs;

	shca_interface_name(hdr, &hdr->hcas[hca], entry->name);
	shca_route_of(hdr, hca, kind, &entry->address);
	entry->mask.family = entry->broadcast.family = entry->address.family;
	if (kind == SHCA_ROUTE_IPV4) {
		uint32_t hosts = (1u << SUBNET_BITS) - 1;

		entry->mask.in.sin_addr.s_addr = htonl(~hosts);
		entry->broadcast.in.sin_addr.s_addr =
			entry->address.in.sin_addr.s_addr | htonl(hosts);
		ifaddrs->ifa_broadaddr = (struct sockaddr *)&entry->broadcast;
	} else {
		memset(&entry->mask.in6.sin6_addr, 0xff, SHCA_IPV6_BITS / 8);
	}
	ifaddrs->ifa_name = entry->name;
	ifaddrs->ifa_flags = IFF_UP | IFF_BROADCAST | IFF_RUNNING | IFF_MULTICAST;
	ifaddrs->ifa_addr = (struct sockaddr *)&entry->address;
	ifaddrs->ifa_netmask = (struct sockaddr *)&entry->mask;
	ifaddrs->ifa_data = (void *)(uintptr_t)&ours;
}

/* Returns the addresses of this node's interfaces, and behind them those of the machine. Programs
 * take the first address that librdmacm can bind, which mustn't be the loopback one. */
static struct ifaddrs *with_own(struct ifaddrs *others)
{
	const struct shca_fabric_header *hdr = shca_self.fabric.hdr;
	unsigned count = hdr->devices * SHCA_ROUTE_IP_KINDS;
	struct entry *entries = calloc(count, sizeof(*entries));

	if (!entries)
		return others;
	for (unsigned i = 0; i < count; i++) {
		fill_entry(&entries[i], hdr,
			   shca_self.node * hdr->devices + i / SHCA_ROUTE_IP_KINDS,
			   i % SHCA_ROUTE_IP_KINDS);
		entries[i].ifaddrs.ifa_next = i + 1 < count ? &entries[i + 1].ifaddrs : others;
	}
	return &entries->ifaddrs;
}

int shca_getifaddrs(struct ifaddrs **list)
{
	int ret = NEXT(getifaddrs)(list);

	if (!ret && has_fabric() && shca_process_attach() > 0)
		*list = with_own(*list);
	return ret;
}

void shca_freeifaddrs(struct ifaddrs *list)
{
	struct ifaddrs *others = list;

	while (others && others->ifa_data == &ours)
		others = others->ifa_next;
	if (others != list)
		free(list);
	NEXT(freeifaddrs)(others);
}

/* Returns a device of this node, or NULL if there is no fabric or no such device. */
static const struct shca_hca *device(unsigned number)
{
	const struct shca_fabric_header *hdr;

	if (!has_fabric() || shca_process_attach() <= 0)
		return NULL;
	hdr = shca_self.fabric.hdr;
	return number < hdr->devices ? &hdr->hcas[shca_self.node * hdr->devices + number] : NULL;
}

unsigned shca_if_nametoindex(const char *name)
{
	const struct shca_hca *hca;
	char own[IF_NAMESIZE];

	for (unsigned i = 0; (hca = device(i)); i++) {
		shca_interface_name(shca_self.fabric.hdr, hca, own);
		if (!strcmp(name, own))
			return SHCA_INTERFACE + i;
	}
	return NEXT(if_nametoindex)(name);
}

char *shca_if_indextoname(unsigned index, char *name)
{
	const struct shca_hca *hca =
		index >= SHCA_INTERFACE ? device(index - SHCA_INTERFACE) : NULL;

	if (!hca)
		return NEXT(if_indextoname)(index, name);
	shca_interface_name(shca_self.fabric.hdr, hca, name);
	return name;
}

/* ---------------------------------------------------------------- sockets */

/* An address of a socket. */
union place {
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static uint32_t on_machine(uint32_t ip)
{
	return LOOPBACK | (ip & ((1u << SUBNET_BITS) - 1));
}

/* Makes the global IPv6 address of an interface one of this machine. Returns false for others. */
static bool place_ipv6(struct sockaddr_in6 *in6)
{
	union ibv_gid gid;
	uint64_t number;

	memcpy(gid.raw, in6->sin6_addr.s6_addr, sizeof(gid.raw));
	number = be64toh(gid.global.interface_id);
	if (be64toh(gid.global.subnet_prefix) != SHCA_IPV6_NETWORK || !number ||
	    number >> SUBNET_BITS)
		return false;
	shca_gid_map(on_machine(SHCA_IPV4_BASE + (uint32_t)number - 1), &gid);
	memcpy(in6->sin6_addr.s6_addr, gid.raw, sizeof(gid.raw));
	return true;
}

static bool place_ipv4(struct sockaddr_in *in)
{
	uint32_t ip = ntohl(in->sin_addr.s_addr);

	if (ip >> SUBNET_BITS != SHCA_IPV4_BASE >> SUBNET_BITS)
		return false;
	in->sin_addr.s_addr = htonl(on_machine(ip));
	return true;
}

/* Returns the address at which this machine is reached in place of an interface of the fabric, in
 * `to`, or any other address as it is. */
static const struct sockaddr *place(const struct sockaddr *address, socklen_t len, union place *to)
{
	bool placed = false;

	if (address && len >= sizeof(to->in) && address->sa_family == AF_INET) {
		memcpy(&to->in, address, sizeof(to->in));
		placed = place_ipv4(&to->in);
	} else if (address && len >= sizeof(to->in6) && address->sa_family == AF_INET6) {
		memcpy(&to->in6, address, sizeof(to->in6));
		placed = place_ipv6(&to->in6);
	}
	return placed && has_fabric() ? (const struct sockaddr *)to : address;
}

int shca_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	union place at;

	return NEXT(connect)(fd, place(to, len, &at), len);
}

int shca_bind(int fd, const struct sockaddr *at, socklen_t len)
{
	union place here;

	return NEXT(bind)(fd, place(at, len, &here), len);
}
