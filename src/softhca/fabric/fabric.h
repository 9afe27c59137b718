/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric.h - the shared file of a fabric: making it, mapping it, finding things in it.
 *
 * A fabric lives in a directory DIR (mode 0700) below shca_fabric_root(): "seg", the shared file;
 * "sys.N", the path that ibv_get_sysfs_path() returns on node N; "ev.SLOT.ID", the FIFOs of event
 * channels; "monitor", a FIFO to which an attaching process writes its slot (a uint32_t); "trace"
 * and "capture", links to the folders of recordings (recording.h). The shared file and the FIFOs
 * have mode 0600, the files below sys.N 0444.
 */
#ifndef SHCA_FABRIC_H
#define SHCA_FABRIC_H

#include "layout.h"

/* Room for the path of a file of a fabric: its directory, and a name of this library. */
#define SHCA_PATH_ROOM (sizeof(((struct shca_fabric_header *)0)->dir) + 52)

#define SHCA_ENV_FABRIC "SOFTHCA_FABRIC" /* the directory */
#define SHCA_ENV_NODE   "SOFTHCA_NODE"

/* Values that the ports and the sysfs trees show; the device queries must report the same. */
#define SHCA_FW_VER   "16.35.3006"
#define SHCA_MELLANOX 0x02c9 /* as vendor-id */
#define SHCA_BOARD_ID "SHCA000000001"
/* PortInfo:CapabilityMask (IBA 14.2.5.6), as struct ibv_port_attr has it. */
#define SHCA_CAPS_IB    (IBV_PORT_SYS_IMAGE_GUID_SUP | IBV_PORT_EXTENDED_SPEEDS_SUP)
#define SHCA_CAPS_ETH   (IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS)
#define SHCA_GID_PREFIX 0xfe80000000000000ULL
#define SHCA_ABI        6 /* of uverbs */
#define SHCA_UMAD_ABI   5

/*
 * A mapping of a fabric in this process. View v of an arena is its first SHCA_VIEW << v bytes. A
 * view is mapped when something that ends in it is first used, and stays mapped: the address space
 * that a process takes grows with what it reaches, and what is reached never moves.
 */
#define SHCA_VIEW_LOG2 24
#define SHCA_VIEW      (1ULL << SHCA_VIEW_LOG2)
#define SHCA_VIEWS     (SHCA_ARENA_LOG2 - SHCA_VIEW_LOG2 + 1)

struct shca_fabric {
	int fd;
	struct shca_fabric_header *hdr;
	_Atomic(char *) views[SHCA_VIEWS][SHCA_MAX_PROCS];
};

/*
 * Stores the folder of this user's fabrics: /dev/shm/softhca-UID, because $XDG_RUNTIME_DIR is
 * private but small. Makes the folder (0700) if it is missing. Returns 0 or -errno (-EPERM: the
 * folder belongs to another user, or others may use it).
 */
int shca_fabric_root(char *buf, size_t len);
/* Makes DIR with all files. Returns 0, or -errno with a sentence in err. */
int shca_fabric_create(const char *dir, const struct shca_config *config, const char *command,
		       char *err, size_t errlen);
/* Maps a fabric. Returns 0, or -errno with a sentence in err. proc.h takes the process slot. */
int shca_fabric_attach(const char *dir, struct shca_fabric *fabric, char *err, size_t errlen);
void shca_fabric_detach(struct shca_fabric *fabric);
/* Removes the directory with all files of a fabric. Attached processes keep their mapping.
 * Returns 0 or -errno (-ENOTEMPTY: there is something else in the directory). */
int shca_fabric_remove(const char *dir);

/* Stores where node `node` has its "class/infiniband". Returns 0, -EINVAL (no such node) or
 * -ENAMETOOLONG. */
int shca_fabric_sysfs_path(const struct shca_fabric *fabric, unsigned node, char *buf, size_t len);

/* Backs [off, off + len) of the file with memory. Returns 0, or -ENOMEM while that is still an
 * error and not a SIGBUS. */
int shca_fabric_back(const struct shca_fabric *fabric, uint64_t off, uint64_t len);
/*
 * Touches whole pages that were backed with shca_fabric_back() and that other processes may be
 * backing too: a failing call of theirs takes pages back that nobody has touched yet. Returns 0, or
 * -ENOMEM while that is still an error.
 */
int shca_fabric_touch(void *mem, uint64_t len);

/* Maps that view of an arena. Returns its address, or NULL. */
char *shca_fabric_map_view(struct shca_fabric *fabric, unsigned proc, unsigned view);
/* Returns where [off, off + len) of the arena of slot `proc` is in this process; NULL: an arena has
 * no such bytes, or they can't be mapped. */
static inline char *shca_arena(struct shca_fabric *fabric, unsigned proc, uint64_t off,
			       uint64_t len)
{
	uint64_t end = off + len;
	unsigned view = 0;
	char *p;

	if (end > SHCA_VIEW || off >= end) {
		if (off >= SHCA_ARENA || !len || len > SHCA_ARENA - off)
			return NULL;
		view = 64 - (unsigned)__builtin_clzll(end - 1) - SHCA_VIEW_LOG2;
	}
	p = atomic_load_explicit(&fabric->views[view][proc], memory_order_acquire);
	if (__builtin_expect(!p, 0))
		p = shca_fabric_map_view(fabric, proc, view);
	return p ? p + off : NULL;
}

static inline void *shca_table_entry(const struct shca_fabric *fabric,
				     const struct shca_table *table, uint32_t idx)
{
	return (char *)fabric->hdr + table->offset + (uint64_t)idx * table->entry_size;
}

/* Returns the index of an entry of that table. */
static inline uint32_t shca_table_index(const struct shca_fabric *fabric,
					const struct shca_table *table, const void *entry)
{
	return (uint32_t)(((uint64_t)((const char *)entry - (const char *)fabric->hdr) -
			   table->offset) /
			  table->entry_size);
}

static inline int64_t shca_opt(const struct shca_fabric *fabric, enum shca_opt opt)
{
	return fabric->hdr->config.value[opt];
}

static inline unsigned shca_hca_index(const struct shca_fabric *fabric, const struct shca_hca *hca)
{
	return (unsigned)(hca - fabric->hdr->hcas);
}

/* Locks a robust mutex in shared memory, and takes it over from an owner that died. */
void shca_lock(pthread_mutex_t *m);
/* Ends the process, which can't go on without a lock, with a sentence. */
void shca_lock_failed(int error) __attribute__((noreturn));
void shca_unlock(pthread_mutex_t *m);
int shca_lock_init(pthread_mutex_t *m);

static inline void shca_count(struct shca_hca *hca, enum shca_counter counter, uint64_t n)
{
	atomic_fetch_add_explicit(&hca->counters[counter], n, memory_order_relaxed);
}
/* Adds to a counter that has one writer at a time. */
static inline void shca_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

uint64_t shca_real_now(void); /* CLOCK_MONOTONIC, ns */
/* The time of the adapters, ns: the real one, or after shca_fabric_follow_clock() that of a virtual
 * clock.
 */
uint64_t shca_now(void);
void shca_fabric_follow_clock(struct shca_clock *clock);
/* Returns the virtual clock of a fabric, or NULL if it has none. */
static inline struct shca_clock *shca_fabric_clock(const struct shca_fabric *fabric)
{
	return shca_opt(fabric, SHCA_O_CLOCK) == SHCA_CLOCK_VIRTUAL ? &fabric->hdr->clock : NULL;
}

#endif
