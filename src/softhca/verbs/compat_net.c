/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_net.c - the interfaces of a node's HCAs, as sockets see them. getifaddrs() lists them. TCP
 * and UDP to their IPv4 addresses, 10.77.x.y, go to 127.77.x.y, which the kernel takes for this
 * machine, so a program that has both sockets and librdmacm needs one address of its peer.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "verbs.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "clock/next.h"
#include "cm/route.h"

#define SUBNET_BITS 16
#define LOOPBACK    (0x7f000000u | (SHCA_IPV4_BASE & 0x00ff0000u)) /* 127.77.0.0 */

#define FUNCTIONS(FN)                                                        \
	FN(int, getifaddrs, (struct ifaddrs * *list))                        \
	FN(void, freeifaddrs, (struct ifaddrs * list))                       \
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
		       uint16_t family)
{
	struct ifaddrs *ifaddrs = &entry->ifaddrs;

	snprintf(entry->name, sizeof(entry->name), shca_is_ethernet(hdr) ? "roce%u" : "ib%u",
		 hdr->hcas[hca].device);
	shca_route_of(hdr, hca, family, &entry->address);
	entry->mask.family = entry->broadcast.family = family;
	if (family == AF_INET) {
		uint32_t hosts = (1u << SUBNET_BITS) - 1;

		entry->mask.in.sin_addr.s_addr = htonl(~hosts);
		entry->broadcast.in.sin_addr.s_addr =
			entry->address.in.sin_addr.s_addr | htonl(hosts);
		ifaddrs->ifa_broadaddr = (struct sockaddr *)&entry->broadcast;
	} else {
		memset(&entry->mask.in6.sin6_addr, 0xff, 8);
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
	unsigned count = hdr->devices * 2;
	struct entry *entries = calloc(count, sizeof(*entries));

	if (!entries)
		return others;
	for (unsigned i = 0; i < count; i++) {
		fill_entry(&entries[i], hdr, shca_self.node * hdr->devices + i / 2,
			   i % 2 ? AF_INET6 : AF_INET);
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

/* ---------------------------------------------------------------- sockets */

/* Returns the address at which this machine is reached in place of an interface of the fabric, in
 * `to`, or any other address as it is. */
static const struct sockaddr *place(const struct sockaddr *address, socklen_t len,
				    struct sockaddr_in *to)
{
	uint32_t ip;

	if (!address || len < sizeof(*to) || address->sa_family != AF_INET)
		return address;
	memcpy(to, address, sizeof(*to));
	ip = ntohl(to->sin_addr.s_addr);
	if (ip >> SUBNET_BITS != SHCA_IPV4_BASE >> SUBNET_BITS || !has_fabric())
		return address;
	to->sin_addr.s_addr = htonl(LOOPBACK | (ip & ((1u << SUBNET_BITS) - 1)));
	return (const struct sockaddr *)to;
}

int shca_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	struct sockaddr_in in;

	return NEXT(connect)(fd, place(to, len, &in), len);
}

int shca_bind(int fd, const struct sockaddr *at, socklen_t len)
{
	struct sockaddr_in in;

	return NEXT(bind)(fd, place(at, len, &in), len);
}
