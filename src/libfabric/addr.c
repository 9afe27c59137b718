/* SPDX-License-Identifier: BSD-3-Clause */
#include "addr.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAGIC   0x7471 /* "tq" */
#define VERSION 1

static struct tf_addr make(enum tf_addr_kind kind, uint32_t port, uint32_t number,
			   uint32_t endpoint)
{
	return (struct tf_addr){
		.magic = htons(MAGIC),
		.version = VERSION,
		.kind = (uint8_t)kind,
		.port = port,
		.number = number,
		.endpoint = endpoint,
	};
}

struct tf_addr tf_addr_make(const struct tq_locator *locator, uint32_t endpoint)
{
	return make(TF_ADDR_ENDPOINT, htonl(locator->port), htonl(locator->number),
		    htonl(endpoint));
}

struct tf_addr tf_addr_service(uint32_t ipv4, uint16_t udp)
{
	return make(TF_ADDR_SERVICE, ipv4, htonl(ntohs(udp)), 0);
}

bool tf_addr_is_valid(const void *bytes)
{
	struct tf_addr addr;

	memcpy(&addr, bytes, sizeof(addr));
	return ntohs(addr.magic) == MAGIC && addr.version == VERSION &&
	       addr.kind <= TF_ADDR_SERVICE;
}

struct tq_locator tf_addr_locator(const struct tf_addr *addr)
{
	return (struct tq_locator){ntohl(addr->port), ntohl(addr->number)};
}

uint32_t tf_addr_endpoint(const struct tf_addr *addr)
{
	return ntohl(addr->endpoint);
}

size_t tf_addr_print(const struct tf_addr *addr, char *text, size_t size)
{
	struct in_addr host = {addr->port};
	char name[INET_ADDRSTRLEN];

	if (addr->kind == TF_ADDR_SERVICE) {
		inet_ntop(AF_INET, &host, name, sizeof(name));
		return (size_t)snprintf(text, size, "fi_tupleq://%s:%" PRIu32 "/service", name,
					ntohl(addr->number)) +
		       1;
	}
	return (size_t)snprintf(text, size, "fi_tupleq://%" PRIx32 ":%" PRIx32 "/%" PRIx32,
				ntohl(addr->port), ntohl(addr->number), ntohl(addr->endpoint)) +
	       1;
}

bool tf_addr_parse(const char *text, struct tf_addr *addr)
{
	char name[INET_ADDRSTRLEN];
	struct in_addr host;
	uint32_t port, number, endpoint;
	int end = 0;

	if (sscanf(text, "fi_tupleq://%15[0-9.]:%" SCNu32 "/service%n", name, &number, &end) == 2 &&
	    end && !text[end] && number <= UINT16_MAX && inet_pton(AF_INET, name, &host) == 1) {
		*addr = tf_addr_service(host.s_addr, htons((uint16_t)number));
		return true;
	}
	end = 0;
	if (sscanf(text, "fi_tupleq://%" SCNx32 ":%" SCNx32 "/%" SCNx32 "%n", &port, &number,
		   &endpoint, &end) != 3 ||
	    !end || text[end])
		return false;
	*addr = tf_addr_make(&(struct tq_locator){port, number}, endpoint);
	return true;
}

bool tf_addr_read(struct tf_addr *addr, uint32_t format, const void *from, size_t len)
{
	bool valid;

	if (format == FI_ADDR_STR) {
		valid = memchr(from, '\0', len) && tf_addr_parse(from, addr);
	} else {
		valid = len == sizeof(*addr) && tf_addr_is_valid(from);
		if (valid)
			memcpy(addr, from, sizeof(*addr));
	}
	if (!valid)
		memset(addr, 0, sizeof(*addr));
	return valid;
}

size_t tf_addr_write(const struct tf_addr *addr, uint32_t format, void *to, size_t room)
{
	if (format == FI_ADDR_STR)
		return tf_addr_print(addr, to, room);
	memcpy(to, addr, room < sizeof(*addr) ? room : sizeof(*addr));
	return sizeof(*addr);
}
