/* SPDX-License-Identifier: BSD-3-Clause */
#include "service.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fi_errno.h>

int tf_service_resolve(const char *node, const char *service, uint64_t flags, struct tf_addr *addr)
{
	struct addrinfo hints = {
		.ai_family = AF_INET,
		.ai_socktype = SOCK_DGRAM,
		.ai_flags = (flags & FI_NUMERICHOST ? AI_NUMERICHOST : 0) |
			    (flags & FI_SOURCE ? AI_PASSIVE : 0),
	};
	const struct sockaddr_in *ip;
	struct addrinfo *found;

	if (node && tf_addr_parse(node, addr))
		return 0;
	if (getaddrinfo(node, service ? service : "0", &hints, &found))
		return -FI_ENODATA;
	ip = (const struct sockaddr_in *)(const void *)found->ai_addr;
	*addr = tf_addr_service(ip->sin_addr.s_addr, ip->sin_port);
	freeaddrinfo(found);
	return 0;
}

bool tf_service_add(const char *name, size_t add, char *to, size_t size)
{
	size_t len = strlen(name), digits = 0;

	if (!add)
		return (size_t)snprintf(to, size, "%s", name) < size;
	while (digits < len && name[len - digits - 1] >= '0' && name[len - digits - 1] <= '9')
		digits++;
	if (!digits)
		return false;
	return (size_t)snprintf(to, size, "%.*s%0*llu", (int)(len - digits), name, (int)digits,
				strtoull(name + len - digits, NULL, 10) + add) < size;
}
