/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of endpoints, as users exchange them: the process's name in its fabric, and a number
 * that the endpoint has in its process. They are written as "fi_tupleq://PORT:NUMBER/ENDPOINT", all
 * in hexadecimal digits.
 */
#ifndef TF_ADDR_H
#define TF_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <tupleq/look_up.h>

#include "versions.h"

/* The format of addresses of this provider alone. */
#define TF_ADDR_FORMAT (TF_PROV_SPECIFIC | 0x7471u)

enum tf_addr_kind {
	TF_ADDR_ENDPOINT, /* an endpoint */
	TF_ADDR_SERVICE   /* host and service, as sockets have them; the endpoint is asked for */
};

/* An address, in network byte order. */
struct tf_addr {
	uint16_t magic;
	uint8_t version, kind; /* enum tf_addr_kind */
	uint32_t port;         /* of struct tq_locator; TF_ADDR_SERVICE: the IPv4 address */
	uint32_t number;       /* of struct tq_locator; TF_ADDR_SERVICE: the UDP port */
	uint32_t endpoint;
};
_Static_assert(sizeof(struct tf_addr) == 16, "addresses have no gaps");

/* The most characters of an address's text, with its NUL. */
#define TF_ADDR_TEXT 64

/* Returns the address of an endpoint. */
struct tf_addr tf_addr_make(const struct tq_locator *locator, uint32_t endpoint);
/* Returns the address that stands for a service of a host; both in network byte order. */
struct tf_addr tf_addr_service(uint32_t ipv4, uint16_t udp);
/* Returns true if the bytes are an address of this version. */
bool tf_addr_is_valid(const void *addr);
struct tq_locator tf_addr_locator(const struct tf_addr *addr);
uint32_t tf_addr_endpoint(const struct tf_addr *addr);
/* Writes the address as a text of at most `size` bytes. Returns the size that its whole text
 * takes. */
size_t tf_addr_print(const struct tf_addr *addr, char *text, size_t size);
/* Reads such a text. Returns false if it isn't one. */
bool tf_addr_parse(const char *text, struct tf_addr *addr);

/* ---- addresses as users have them: TF_ADDR_FORMAT, or texts (FI_ADDR_STR) ---- */

/* Reads a user's address of `len` bytes in this format. Returns false, with an address of zeros, if
 * it isn't one. */
bool tf_addr_read(struct tf_addr *addr, uint32_t format, const void *from, size_t len);
/* Writes the address in this format, as far as there is room. Returns the size that the whole
 * address takes. */
size_t tf_addr_write(const struct tf_addr *addr, uint32_t format, void *to, size_t room);

#endif
