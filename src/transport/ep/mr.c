/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations, as the library's users make them. */
#include <errno.h>

#include "ep/objects.h"
#include "net/adapter/mem.h"

int tq_mr_register(struct tq_ep *ep, void *addr, size_t len, bool write, struct tq_mr **mr)
{
	return tq_mem_register(&ep->net, addr, len, TQ_ACCESS_READ | (write ? TQ_ACCESS_WRITE : 0),
			       mr);
}

int tq_mr_expose(struct tq_ep *ep, void *addr, size_t len, unsigned access, struct tq_mr **mr)
{
	int rc;

	if (access & ~(TQ_ACCESS_READ | TQ_ACCESS_WRITE | TQ_ACCESS_ATOMIC))
		return -EINVAL;
	if (access & TQ_ACCESS_ATOMIC && !ep->net.limits.has_atomics)
		return -EOPNOTSUPP;
	/* Without the lock first: there is room mostly. */
	rc = tq_mem_register(&ep->net, addr, len, access, mr);
	if (rc != -ENOMEM)
		return rc;
	tq_lock(&ep->lock);
	rc = tq_mem_expose(&ep->net, addr, len, access, mr);
	tq_unlock(&ep->lock);
	return rc;
}

uint32_t tq_mr_key(const struct tq_mr *mr)
{
	return tq_mem_key(mr);
}

void tq_mr_count_outdated(struct tq_mr *mr)
{
	tq_mem_count_outdated(mr);
}

void tq_mr_abandon(struct tq_ep *ep, struct tq_mr *mr)
{
	tq_lock(&ep->lock);
	tq_mem_abandon(&ep->net, mr);
	tq_unlock(&ep->lock);
}

void tq_mr_deregister(struct tq_mr *mr)
{
	tq_mem_deregister(mr);
}
