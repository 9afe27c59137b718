/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/adapter/address.h"

#include <errno.h>
#include <string.h>

#include "net/adapter/objects.h"

/* Routers decrement the hop limit; a packet with a global route may cross some. */
#define HOP_LIMIT 64

/* The full-membership bit does not make another partition. */
#define PKEY_MASK 0x7fffu

/* Returns true if the GID is an IPv4 address, mapped into IPv6. */
static bool is_ipv4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid, prefix, sizeof(prefix));
}

int tq_gid_reach(const union ibv_gid *gid)
{
	static const uint8_t ipv4_link_local[] = {169, 254};

	if (is_ipv4(gid->raw))
		return memcmp(gid->raw + 12, ipv4_link_local, sizeof(ipv4_link_local)) ? 3 : 1;
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80 ? 1 : 2;
}

void tq_address_fill(const struct tq_net *net, uint32_t ud_qpn, uint32_t ud_qkey, uint64_t nonce,
		     uint64_t inbox, struct tq_address *address)
{
	const struct tq_device *dev = &net->dev;

	*address = (struct tq_address){
		.magic = tq_put32(TQ_ADDRESS_MAGIC),
		.version = tq_put16(TQ_ADDRESS_VERSION),
		.link_layer = dev->port.link_layer,
		.mtu = (uint8_t)dev->mtu,
		.lid = tq_put16(dev->port.lid),
		.pkey = tq_put16(dev->pkey),
		.ud_qpn = tq_put32(ud_qpn),
		.domain = tq_put64(net->domain),
		.nonce = tq_put64(nonce),
		.ud_qkey = tq_put32(ud_qkey),
		.inbox = tq_put64(inbox),
	};
	memcpy(address->gid, dev->gid.raw, sizeof(address->gid));
}

bool tq_address_is_valid(const void *bytes, size_t len)
{
	struct tq_address address;

	if (len != sizeof(address))
		return false;
	memcpy(&address, bytes, sizeof(address));
	return tq_get32(address.magic) == TQ_ADDRESS_MAGIC &&
	       tq_get16(address.version) == TQ_ADDRESS_VERSION && address.mtu >= IBV_MTU_256 &&
	       address.mtu <= IBV_MTU_4096 && tq_get32(address.ud_qpn) >= 2 &&
	       !(tq_get32(address.ud_qpn) >> 24) && !tq_get32(address.zero);
}

int tq_address_check(const struct tq_net *net, const void *bytes, size_t len,
		     struct tq_address *address)
{
	const struct tq_device *dev = &net->dev;

	if (!tq_address_is_valid(bytes, len))
		return -EPROTO;
	memcpy(address, bytes, sizeof(*address));
	if (address->link_layer != dev->port.link_layer ||
	    ((tq_get16(address->pkey) ^ dev->pkey) & PKEY_MASK))
		return -ENETUNREACH;
	/* An IPv4 address and an IPv6 one don't reach each other. */
	if (address->link_layer == IBV_LINK_LAYER_ETHERNET)
		return is_ipv4(address->gid) == is_ipv4(dev->gid.raw) ? 0 : -ENETUNREACH;
	/* Without a global route only LIDs of this subnet can be reached. */
	if (dev->gid_index < 0 &&
	    (!tq_get16(address->lid) ||
	     memcmp(address->gid, dev->gid.raw, sizeof(dev->gid.global.subnet_prefix))))
		return -ENETUNREACH;
	return 0;
}

void tq_address_path(const struct tq_net *net, const union ibv_gid *gid, uint16_t lid,
		     struct ibv_ah_attr *path)
{
	const struct tq_device *dev = &net->dev;

	*path = (struct ibv_ah_attr){
		.dlid = lid,
		.sl = (uint8_t)net->params->service_level,
		.port_num = dev->port_num,
	};
	if (dev->gid_index < 0)
		return;
	path->is_global = 1;
	path->grh.dgid = *gid;
	path->grh.sgid_index = (uint8_t)dev->gid_index;
	path->grh.hop_limit = HOP_LIMIT;
	path->grh.traffic_class = (uint8_t)net->params->traffic_class;
}
