/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - the link model: reserving ports.
 */
#include "link.h"

uint64_t shca_link_latency(void)
{
	return shca_self.fabric.hdr->config.link_latency_ns;
}

/* Reserves the port from time t on, for `busy` ns. Returns when the port was free to begin. */
static uint64_t reserve(_Atomic uint64_t *free_at, uint64_t t, uint64_t busy)
{
	uint64_t was = atomic_load_explicit(free_at, memory_order_relaxed), begin;

	do
		begin = was > t ? was : t;
	while (!atomic_compare_exchange_weak_explicit(free_at, &was, begin + busy,
						      memory_order_relaxed, memory_order_relaxed));
	return begin;
}

/* Returns how long (ns) a message keeps a port busy. */
static uint64_t busy_time(uint64_t bytes)
{
	const struct shca_config *config = &shca_self.fabric.hdr->config;
	uint64_t busy = 0, least = 0;

	if (config->link_bytes_per_sec)
		busy = (uint64_t)((double)bytes * 1e9 / (double)config->link_bytes_per_sec);
	if (config->link_msgs_per_sec)
		least = 1000000000u / config->link_msgs_per_sec;
	return busy < least ? least : busy;
}

uint64_t shca_link_leave(struct shca_hca *from, uint64_t bytes, uint64_t start)
{
	return reserve(&from->egress_free, start, busy_time(bytes)) + shca_link_latency();
}

uint64_t shca_link_arrive(struct shca_hca *to, uint64_t bytes, uint64_t *first)
{
	uint64_t busy = busy_time(bytes);

	*first = reserve(&to->ingress_free, *first, busy);
	return *first + busy;
}

uint64_t shca_link_until_nak(uint64_t mtu)
{
	const struct shca_config *config = &shca_self.fabric.hdr->config;

	return mtu + (uint64_t)((double)config->link_bytes_per_sec * 2 *
				(double)config->link_latency_ns / 1e9);
}

uint64_t shca_link_send(struct shca_hca *from, struct shca_hca *to, uint64_t bytes, uint64_t start,
			uint64_t *first)
{
	*first = shca_link_leave(from, bytes, start);
	return shca_link_arrive(to, bytes, first);
}
