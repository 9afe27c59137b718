/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for the HCA: registrations of user buffers, through the caller's cache or directly; the
 * library's own memory; and the sink behind each receive.
 */
#ifndef TQ_NET_MEM_H
#define TQ_NET_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/adapter/address.h"
#include "proto/common/net_ops.h"

struct tq_net;
struct tq_mr;

#define TQ_PAGE 4096u

/* Memory of the library's own. */
struct tq_own {
	void *addr;
	size_t len;
	struct ibv_mr *mr;
	struct tq_own *next;
};

struct tq_mem {
	/* Registrations of the whole address space, by ODP. all[0] is for reading. all[1] is for
	 * writing, too; the HCA can't use it for pages that are mapped read-only, so sends use
	 * all[0]. */
	struct ibv_mr *all[2];
	struct tq_reg all_reg[2];
	struct tq_own *own;      /* list */
	struct tq_mr *abandoned; /* list */
	/* Frees some memory of the library's own that nothing uses. Returns false if there is none.
	 * NULL: there is none. */
	bool (*free_idle)(struct tq_net *net);
	_Atomic bool full; /* a registration has failed for lack of memory */
	bool warned;       /* the log says that messages are slow because of that */
	struct ibv_mr *sink;
	void *sink_range; /* NULL: the sink is a null MR */
	size_t sink_range_len;
};

int tq_mem_open(struct tq_net *net);
void tq_mem_close(struct tq_net *net);

/* Gets the registration of a user's buffer, from the cache if there is one, until tq_mem_reg_put().
 * NULL: the buffer can't be registered. */
struct tq_reg *tq_mem_reg_get(struct tq_net *net, void *addr, uint64_t len, bool write,
			      void **cookie);
void tq_mem_reg_put(struct tq_net *net, struct tq_reg *reg, void *cookie);
/* Registers memory of the caller's; access: TQ_ACCESS_*. If there is no room, idle registrations of
 * the cache and of the library are ended. */
int tq_mem_expose(struct tq_net *net, void *addr, size_t len, unsigned access, struct tq_mr **mr);
/* Registers memory without asking the cache, for the cache itself. This function and the four below
 * need no lock: a cache calls them, with locks of its own. */
int tq_mem_register(struct tq_net *net, void *addr, size_t len, unsigned access, struct tq_mr **mr);
void tq_mem_deregister(struct tq_mr *mr);
/* Returns the key by which peers reach the memory. */
uint32_t tq_mem_key(const struct tq_mr *mr);
/* Counts a registration that a cache found outdated. */
void tq_mem_count_outdated(struct tq_mr *mr);
/* Returns the registration as struct tq_sg names it; NULL for NULL. */
struct tq_reg *tq_mem_reg_of(struct tq_mr *mr);
/* Leaves a registration to tq_mem_close(). */
void tq_mem_abandon(struct tq_net *net, struct tq_mr *mr);

/* Maps memory for the library itself, registered. NULL: errno says why not. */
void *tq_mem_alloc(struct tq_net *net, size_t len, struct tq_reg *reg);
void tq_mem_free(struct tq_net *net, void *addr);

/* Fills in the SGE at the end of each receive; its length is what the sink takes at most. Returns
 * false if there is no sink. */
bool tq_mem_get_sink(struct tq_net *net, struct ibv_sge *sge);

#endif
