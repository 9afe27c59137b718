/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * packet.c - headers and CRCs.
 */
#include "packet.h"

#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>

#include "crc.h"
#include "fabric/address.h"
#include "grh.h"

#define LRH_BYTES  8u
#define GRH_BYTES  40u
#define BTH_BYTES  12u
#define ICRC_BYTES 4u

#define LNH_LOCAL           2u /* a BTH follows the LRH */
#define LNH_GLOBAL          3u /* a GRH does */
#define MIGRATED            0x40u
#define ROCE_V1             0x8915u
#define ROCE_V2_PORT        4791u
#define FIRST_PORT          0xc000u /* of the senders of RoCE v2 */
#define FIRST_MULTICAST_LID 0xc000u

void shca_packet_begin(struct shca_packet *packet, const struct shca_bth *bth)
{
	uint32_t padding = -bth->length & 3u;

	packet->begin = packet->end = SHCA_PACKET_FRONT;
	shca_packet_put32(packet, (uint32_t)bth->opcode << 24 | (bth->solicited ? 1u << 23 : 0) |
					  MIGRATED << 16 | padding << 20 | bth->pkey);
	shca_packet_put32(packet, bth->qpn & 0xffffff);
	shca_packet_put32(packet, (bth->asks_ack ? 1u << 31 : 0) | (bth->psn & 0xffffff));
}

/* Returns the place of `len` bytes in front of those that are there, and adds them. */
static uint8_t *in_front(struct shca_packet *packet, uint32_t len)
{
	packet->begin -= len;
	return packet->bytes + packet->begin;
}

/* Returns the bytes that are there, and those of the ICRC. */
static uint32_t length(const struct shca_packet *packet)
{
	return packet->end - packet->begin + ICRC_BYTES;
}

/* ---------------------------------------------------------------- CRCs */

/* The fields that may change on the way count as ones in the ICRC (IBA 7.8.1, A17.3.3). */
static void mask_ip(uint8_t *ip, bool v4)
{
	if (v4) {
		struct iphdr header;

		memcpy(&header, ip, sizeof(header));
		header.tos = 0xff;
		header.ttl = 0xff;
		header.check = 0xffff;
		memcpy(ip, &header, sizeof(header));
		return;
	}
	/* The traffic class, the flow label and the hop limit of a GRH or an IPv6 header. */
	ip[0] |= 0x0f;
	memset(ip + 1, 0xff, 3);
	ip[7] = 0xff;
}

/*
 * Adds the ICRC. `front` bytes of the packet stand in front of the GRH or IP header, which has `ip`
 * bytes and is followed by `udp` bytes.
 */
static void add_icrc(struct shca_packet *packet, uint32_t front, uint32_t ip, uint32_t udp)
{
	uint8_t masked[LRH_BYTES + GRH_BYTES + sizeof(struct udphdr) + BTH_BYTES], *at = masked;
	uint32_t crc, headers = ip + udp + BTH_BYTES;
	const uint8_t *bth = packet->bytes + SHCA_PACKET_FRONT;

	memset(at, 0xff, LRH_BYTES);
	if (front == LRH_BYTES)
		memcpy(at, packet->bytes + packet->begin, LRH_BYTES);
	at[0] |= 0xf0; /* the virtual lane; on Ethernet all of the LRH */
	at += LRH_BYTES;
	memcpy(at, packet->bytes + packet->begin + front, headers);
	if (ip)
		mask_ip(at, ip == sizeof(struct iphdr));
	at += ip;
	if (udp)
		memset(at + offsetof(struct udphdr, check), 0xff, 2);
	at += udp;
	at[4] = 0xff; /* the BTH's reserved byte, which RoCE uses for congestion */
	crc = shca_crc_invariant(SHCA_CRC_BEGIN, masked, LRH_BYTES + headers);
	crc = shca_crc_invariant(crc, bth + BTH_BYTES, packet->end - SHCA_PACKET_FRONT - BTH_BYTES);
	crc = htole32(~crc);
	shca_packet_put(packet, &crc, sizeof(crc));
}

static void add_vcrc(struct shca_packet *packet)
{
	uint16_t crc = shca_crc_variant(packet->bytes + packet->begin, packet->end - packet->begin);

	crc = htole16(crc);
	shca_packet_put(packet, &crc, sizeof(crc));
}

/* ---------------------------------------------------------------- headers */

static uint16_t lid_of(const struct shca_ud_dest *path)
{
	if (path->multicast)
		return path->dlid >= FIRST_MULTICAST_LID ? path->dlid : FIRST_MULTICAST_LID;
	return path->hca < 0 ? path->dlid : shca_self.fabric.hdr->hcas[path->hca].lid;
}

static void end_infiniband(struct shca_packet *packet, const struct shca_hca *from,
			   const struct shca_ud_dest *path)
{
	uint32_t grh = path->global ? GRH_BYTES : 0;
	uint16_t lrh[4];

	if (grh) {
		uint32_t behind = length(packet);

		shca_grh_make(from, path, behind, (void *)in_front(packet, grh));
	}
	lrh[0] = htobe16((uint16_t)((path->sl & 15u) << 4 | (grh ? LNH_GLOBAL : LNH_LOCAL)));
	lrh[1] = htobe16(lid_of(path));
	lrh[2] = htobe16((uint16_t)((length(packet) + LRH_BYTES) / 4));
	lrh[3] = htobe16(from->lid);
	memcpy(in_front(packet, LRH_BYTES), lrh, sizeof(lrh));
	add_icrc(packet, LRH_BYTES, grh, 0);
	add_vcrc(packet);
}

/* Returns the sender's UDP port, which tells switches the flows apart, as Linux chooses it. */
static uint16_t udp_port(const struct shca_packet *packet, const struct shca_ud_dest *path)
{
	uint32_t label = path->flow_label & 0xfffff;
	uint16_t qpn;

	if (label)
		return (uint16_t)(((label ^ label >> 14) & 0x3fff) | FIRST_PORT);
	memcpy(&qpn, packet->bytes + SHCA_PACKET_FRONT + 6, sizeof(qpn));
	return (uint16_t)(be16toh(qpn) | FIRST_PORT);
}

/* Adds to the one's complement sum of RFC 1071. */
static uint32_t sum_up(uint32_t sum, const uint8_t *data, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
	return sum;
}

/* Fills in the checksum of UDP, which IPv6 requires (RFC 8200, 8.1), when the packet is complete.
 */
static void add_checksum(uint8_t *ip, uint8_t *udp, uint32_t len)
{
	uint32_t sum = sum_up(IPPROTO_UDP + len, ip + 8, 2 * sizeof(struct in6_addr));

	sum = sum_up(sum, udp, len);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	sum = sum == 0xffff ? sum : ~sum & 0xffff;
	udp[offsetof(struct udphdr, check)] = (uint8_t)(sum >> 8);
	udp[offsetof(struct udphdr, check) + 1] = (uint8_t)sum;
}

/* Stores the MAC address that a path leads to (RFC 1112, RFC 2464). */
static void mac_of(const struct shca_ud_dest *path, uint8_t mac[6])
{
	const uint8_t *gid = path->dgid.raw;

	memset(mac, 0, 6);
	if (path->multicast && shca_gid_is_ipv4(&path->dgid)) {
		memcpy(mac, (const uint8_t[]){0x01, 0x00, 0x5e, gid[13] & 0x7f, gid[14], gid[15]},
		       6);
	} else if (path->multicast) {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, gid + 12, 4);
	} else if (path->hca >= 0) {
		shca_mac(&shca_self.fabric.hdr->hcas[path->hca], mac);
	}
}

static void end_ethernet(struct shca_packet *packet, const struct shca_hca *from,
			 const struct shca_ud_dest *path)
{
	enum ibv_gid_type kind;
	union ibv_gid gid;
	struct ibv_grh grh;
	struct ether_header ether;
	uint32_t behind = length(packet), udp = 0, ip = GRH_BYTES;
	bool v4;

	shca_gid_at(shca_self.fabric.hdr, from, path->sgid_index, &gid, &kind);
	v4 = kind == IBV_GID_TYPE_ROCE_V2 && shca_gid_is_ipv4(&gid);
	shca_grh_make(from, path, behind, &grh);
	ether.ether_type = htobe16(ROCE_V1);
	if (kind == IBV_GID_TYPE_ROCE_V2) {
		struct udphdr header = {.source = htobe16(udp_port(packet, path)),
					.dest = htobe16(ROCE_V2_PORT),
					.len = htobe16((uint16_t)(behind + sizeof(header)))};

		udp = sizeof(header);
		ip = v4 ? sizeof(struct iphdr) : GRH_BYTES;
		ether.ether_type = htobe16(v4 ? ETHERTYPE_IP : ETHERTYPE_IPV6);
		memcpy(in_front(packet, udp), &header, udp);
	}
	memcpy(in_front(packet, ip), (char *)&grh + sizeof(grh) - ip, ip);
	mac_of(path, ether.ether_dhost);
	shca_mac(from, ether.ether_shost);
	memcpy(in_front(packet, sizeof(ether)), &ether, sizeof(ether));
	add_icrc(packet, sizeof(ether), ip, udp);
	if (udp && !v4) {
		uint8_t *header = packet->bytes + packet->begin + sizeof(ether);

		add_checksum(header, header + ip,
			     packet->end - packet->begin - (uint32_t)sizeof(ether) - ip);
	}
}

void shca_packet_end(struct shca_packet *packet, const struct shca_hca *from,
		     const struct shca_ud_dest *path)
{
	uint32_t padding = -(packet->end - packet->begin) & 3u;

	memset(shca_packet_room(packet, padding), 0, padding);
	if (shca_is_ethernet(shca_self.fabric.hdr))
		end_ethernet(packet, from, path);
	else
		end_infiniband(packet, from, path);
}
