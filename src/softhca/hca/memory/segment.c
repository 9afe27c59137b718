/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.c - finding, attaching and detaching System V segments.
 */
#define _GNU_SOURCE 1
#include "segment.h"

#include <fcntl.h>
#include <linux/types.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric/cancel.h"
#include "fabric/proc.h"
#include "fabric/table.h"

/* Largest number of segments that are attached at a time, each in the place that its number says. A
 * choice: access to a segment whose place is taken goes through a system call. */
#define ATTACHMENTS 256

/* Query about the mapping at an address, as <linux/fs.h> of Linux 6.11 and later has it. */
struct map_query {
	__u64 size, query_flags, query_addr;
	__u64 vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	__u32 dev_major, dev_minor, vma_name_size, build_id_size;
	__u64 vma_name_addr, build_id_addr;
};
#define MAP_QUERY        _IOWR('f', 17, struct map_query)
#define MAP_QUERY_SHARED 0x08

#define REMOTE_ACCESS                                                                  \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_MW_BIND)

/* Table of attached segments; a segment has one place, by its number. */
struct attachment {
	bool used;
	int id;
	uint64_t ns; /* IPC namespace to which the number belongs */
	char *base;  /* NULL: this process may not attach the segment */
	size_t size;
	unsigned pins;                  /* number of regions of this process in it */
	const struct shca_mr_entry *mr; /* region of a peer through which it was used last */
	uint32_t number;                /* number of that region */
};

/* The lock is also held during an access, so that no segment is detached meanwhile. */
static struct attachment attachments[ATTACHMENTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---------------------------------------------------------------- attachments */

static uint64_t own_ns(void)
{
	struct stat st;

	return stat("/proc/self/ns/ipc", &st) ? 0 : st.st_ino;
}

static struct attachment *place_of(int id)
{
	return &attachments[(unsigned)id % ATTACHMENTS];
}

static bool is(const struct attachment *attachment, uint64_t ns, int id)
{
	return attachment->used && attachment->id == id && attachment->ns == ns;
}

static bool needed(const struct attachment *attachment)
{
	uint64_t word;

	if (attachment->pins || !attachment->mr)
		return attachment->pins;
	word = shca_table_state_word(attachment->mr);
	return shca_word_number(word) == attachment->number && shca_word_state(word) == SHCA_LIVE;
}

/* Calls the kernel directly, because a program may have hooks in shmdt(): they don't know this
 * attachment, and may read all mappings. */
static void detach(char *base)
{
#ifdef SYS_shmdt
	syscall(SYS_shmdt, base);
#else
	shmdt(base);
#endif
}

static void drop(struct attachment *attachment)
{
	if (attachment->base)
		detach(attachment->base);
	*attachment = (struct attachment){0};
}

static void drop_unneeded(struct attachment *attachment)
{
	if (attachment->used && !needed(attachment))
		drop(attachment);
}

static void attach(struct attachment *attachment, uint64_t ns, int id)
{
	struct shmid_ds ds;
	void *base;

	*attachment = (struct attachment){.used = true, .id = id, .ns = ns};
	if (!ns || own_ns() != ns)
		return;
	base = shmat(id, NULL, 0);
	if (base == (void *)-1)
		return;
	attachment->base = base;
	attachment->size = shmctl(id, IPC_STAT, &ds) ? 0 : ds.shm_segsz;
}

/* Returns the place of a segment, or NULL if another segment that is needed has it. Needs the
 * lock. */
static struct attachment *take(uint64_t ns, int id)
{
	struct attachment *attachment = place_of(id);

	if (is(attachment, ns, id))
		return attachment;
	drop_unneeded(attachment);
	if (attachment->used)
		return NULL;
	attach(attachment, ns, id);
	return attachment;
}

void shca_segment_sweep(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < ATTACHMENTS; i++)
		drop_unneeded(&attachments[i]);
	pthread_mutex_unlock(&lock);
}

void shca_segment_reset(void)
{
	for (unsigned i = 0; i < ATTACHMENTS; i++)
		drop(&attachments[i]);
	pthread_mutex_init(&lock, NULL);
}

/* ---------------------------------------------------------------- the owner */

/* Finds the mapping at an address. Only mappings with a name as short as a segment's are found. */
static bool ask(int maps, uint64_t addr, struct map_query *query)
{
	char name[sizeof("/SYSV00000000 (deleted)")] = "";

	*query = (struct map_query){.size = sizeof(*query),
				    .query_addr = addr,
				    .vma_name_size = sizeof(name),
				    .vma_name_addr = (uintptr_t)name};
	return !ioctl(maps, MAP_QUERY, query) && (query->vma_flags & MAP_QUERY_SHARED) &&
	       !strncmp(name, "/SYSV", 5);
}

/* Returns true if this IPC namespace has a segment. IPC_INFO is tried first, because SHM_INFO goes
 * through all of them. But the highest index, which IPC_INFO returns, may be 0 although there is
 * one. */
static bool any_segment(void)
{
	struct shminfo limits;
	struct shm_info info;

	if (shmctl(0, IPC_INFO, (struct shmid_ds *)(void *)&limits) > 0)
		return true;
	return shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info) >= 0 && info.used_ids > 0;
}

static bool wanted(const struct shca_mr_entry *entry)
{
	return (entry->access & REMOTE_ACCESS) && !(entry->access & IBV_ACCESS_ON_DEMAND) &&
	       shca_opt(&shca_self.fabric, SHCA_O_COPY) == SHCA_COPY_AUTO && any_segment();
}

/* Returns true if the attached segment is the memory behind a mapping. A mapped file may have the
 * name and the number of a segment, but not its device. */
static bool same(int maps, const struct attachment *attachment, const struct map_query *query)
{
	struct map_query own;

	return attachment->base && ask(maps, (uintptr_t)attachment->base, &own) &&
	       own.inode == query->inode && own.dev_major == query->dev_major &&
	       own.dev_minor == query->dev_minor;
}

static void hold(int maps, struct shca_mr_entry *entry)
{
	uint64_t ns = own_ns();
	struct attachment *attachment;
	struct map_query query;

	if (!ask(maps, entry->va, &query) || entry->va + entry->length > query.vma_end)
		return;
	pthread_mutex_lock(&lock);
	attachment = take(ns, (int)query.inode);
	if (attachment && same(maps, attachment, &query)) {
		attachment->pins++;
		entry->shmid = attachment->id;
		entry->shm_ns = ns;
		entry->shm_at = query.vma_offset + (entry->va - query.vma_start);
		entry->flags |= SHCA_MR_SEGMENT;
	} else if (attachment) {
		drop_unneeded(attachment);
	}
	pthread_mutex_unlock(&lock);
}

void shca_segment_hold(struct shca_mr_entry *entry)
{
	int maps, cancel;

	if (!wanted(entry))
		return;
	cancel = shca_cancel_hold();
	maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (maps >= 0) {
		hold(maps, entry);
		close(maps);
	}
	shca_cancel_restore(cancel);
}

void shca_segment_release(const struct shca_mr_entry *entry)
{
	struct attachment *attachment = place_of(entry->shmid);

	if (!(entry->flags & SHCA_MR_SEGMENT))
		return;
	pthread_mutex_lock(&lock);
	attachment->pins--;
	drop_unneeded(attachment);
	pthread_mutex_unlock(&lock);
	shca_proc_segments_gone(&shca_self.fabric, shca_self.slot);
}

/* ---------------------------------------------------------------- the requester */

/* Records that this process uses a peer's region, so that the peer notifies this process when a
 * region goes. */
static void note_use(struct attachment *attachment, const struct shca_mr_entry *entry,
		     unsigned proc)
{
	struct shca_proc *owner = &shca_self.fabric.hdr->procs[proc];

	if (attachment->mr == entry && attachment->number == shca_table_number(entry))
		return;
	atomic_fetch_or(&owner->attached[shca_self.slot / 64], 1ULL << (shca_self.slot % 64));
	attachment->mr = entry;
	attachment->number = shca_table_number(entry);
}

/* Returns where that memory is in this process, or NULL. Needs the lock. */
static char *reach(const struct shca_run *run, unsigned proc, uint64_t len)
{
	const struct shca_mr_entry *entry = run->mr;
	uint64_t at = entry->shm_at + (run->addr - entry->va);
	struct attachment *attachment = place_of(entry->shmid);

	if (!is(attachment, entry->shm_ns, entry->shmid)) {
		int cancel = shca_cancel_hold();

		attachment = take(entry->shm_ns, entry->shmid);
		shca_cancel_restore(cancel);
	}
	if (!attachment)
		return NULL;
	if (proc != shca_self.slot)
		note_use(attachment, entry, proc);
	return attachment->base && at <= attachment->size && len <= attachment->size - at
		       ? attachment->base + at
		       : NULL;
}

/* Returns the size (8, 4, 2 or 1) of the largest aligned unit at the start of n bytes. */
static unsigned unit(const char *at, uint64_t n)
{
	unsigned u = 8;

	while ((uintptr_t)at % u || n < u)
		u /= 2;
	return u;
}

/* Defines a function that copies n units between a segment and own memory, each at once: into the
 * segment if `store`, or else out of it. */
#define COPY(type)                                                                     \
	static inline void copy_##type(char *there, char *own, uint64_t n, bool store) \
	{                                                                              \
		type *units = (type *)(void *)there, value;                            \
                                                                                       \
		for (uint64_t i = 0; i < n; i++, own += sizeof(value)) {               \
			if (store) {                                                   \
				memcpy(&value, own, sizeof(value));                    \
				__atomic_store_n(&units[i], value, __ATOMIC_RELEASE);  \
			} else {                                                       \
				value = __atomic_load_n(&units[i], __ATOMIC_ACQUIRE);  \
				memcpy(own, &value, sizeof(value));                    \
			}                                                              \
		}                                                                      \
	}
COPY(uint64_t)
COPY(uint32_t)
COPY(uint16_t)
COPY(uint8_t)

/* Copies the aligned units at the start of n bytes of a segment: all words of 8 bytes, or one
 * smaller unit. Returns how many bytes these are. */
static inline uint64_t copy(char *there, char *own, uint64_t n, bool store)
{
	unsigned u = unit(there, n);

	if (u == 8) {
		copy_uint64_t(there, own, n / 8, store);
		return n / 8 * 8;
	}
	if (u == 4)
		copy_uint32_t(there, own, 1, store);
	else if (u == 2)
		copy_uint16_t(there, own, 1, store);
	else
		copy_uint8_t(there, own, 1, store);
	return u;
}

/* Returns where a run is in this process, with the lock held, or NULL, without the lock. */
static char *enter(const struct shca_run *run, unsigned proc, uint64_t len)
{
	char *there;

	/* A segment may outlive its process, whose regions must not be used then. */
	if (proc != shca_self.slot && !shca_proc_engine_alive(&shca_self.fabric.hdr->procs[proc]))
		return NULL;
	pthread_mutex_lock(&lock);
	there = reach(run, proc, len);
	if (!there)
		pthread_mutex_unlock(&lock);
	return there;
}

bool shca_segment_write(const struct shca_run *to, unsigned proc, const void *from, uint64_t len)
{
	char *there = enter(to, proc, len);
	char *own = (char *)from;

	if (!there)
		return false;
	for (uint64_t n; len; there += n, own += n, len -= n)
		n = copy(there, own, len, true);
	pthread_mutex_unlock(&lock);
	return true;
}

bool shca_segment_read(const struct shca_run *from, unsigned proc, void *to, uint64_t len)
{
	char *there = enter(from, proc, len), *own = to;

	if (!there)
		return false;
	for (uint64_t n; len; there += n, own += n, len -= n)
		n = copy(there, own, len, false);
	pthread_mutex_unlock(&lock);
	return true;
}
