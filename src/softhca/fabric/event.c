/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.c - FIFOs as event channels, and this process's cache of the descriptors of other
 * processes' channels.
 */
#define _GNU_SOURCE 1
#include "event.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actors.h"
#include "cancel.h"
#include "table.h"
#include "text.h"
#include "xrc_life.h"

/* Writing ends of FIFOs that stay open. A choice: another event opens its FIFO first. */
#define CACHED 256
/* Bytes of events that a channel can hold: what Linux lets a process without privileges have
 * (/proc/sys/fs/pipe-max-size). */
#define PIPE_SIZE (1 << 20)

static_assert(sizeof(struct shca_event) == 16, "a record is 16 bytes, and divides a page");

/* The open writing ends; the least recently used one is replaced. A linear search costs less
 * than the write() that follows. */
static struct {
	pthread_mutex_t lock;
	uint64_t clock;
	struct {
		const struct shca_fabric_header *hdr;
		uint64_t generation; /* state of the slot: shca_proc.state without its last byte */
		uint32_t proc, id;
		int fd;
		uint64_t used; /* last use, by `clock`; 0 = empty */
	} at[CACHED];
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic uint32_t next_id = 1;

/* Device and inode of the FIFO behind each descriptor that is a readable end, because a program may
 * close the descriptor and use its number for something else. Descriptors with higher numbers are
 * not known: a choice, which is 64 KiB of zeroed memory. */
#define KNOWN_FDS 4096
static struct {
	_Atomic uint64_t dev, ino; /* ino 0: not a channel */
} channels[KNOWN_FDS];

void shca_event_note(int fd)
{
	struct stat st;

	if (fd >= KNOWN_FDS || fstat(fd, &st))
		return;
	atomic_store(&channels[fd].dev, st.st_dev);
	atomic_store(&channels[fd].ino, st.st_ino);
}

static void forget_channel(int fd)
{
	/* In a forked child a store copies the page. */
	if (fd >= 0 && fd < KNOWN_FDS && atomic_load(&channels[fd].ino))
		atomic_store(&channels[fd].ino, 0);
}

bool shca_event_is_channel(int fd)
{
	uint64_t ino = fd >= 0 && fd < KNOWN_FDS ? atomic_load(&channels[fd].ino) : 0;
	struct stat st;

	return ino && !fstat(fd, &st) && st.st_ino == ino &&
	       st.st_dev == atomic_load(&channels[fd].dev);
}

static void fifo_path(const struct shca_fabric *fabric, unsigned proc, uint32_t id,
		      char path[static SHCA_PATH_ROOM])
{
	char *end = shca_put_text(path, fabric->hdr->dir);

	end = shca_put_number(shca_put_text(end, "/ev."), proc);
	shca_put_number(shca_put_text(end, "."), id);
}

int64_t shca_event_create(struct shca_fabric *fabric, unsigned proc, int *fd)
{
	char path[SHCA_PATH_ROOM];
	uint32_t id;

	do {
		id = atomic_fetch_add(&next_id, 1);
		fifo_path(fabric, proc, id, path);
		if (!mkfifo(path, 0600))
			break;
		if (errno != EEXIST)
			return -errno;
	} while (true);
	/* Open for writing too, so that there is never an end of file. Blocking, as the user
	 * expects of a channel. */
	*fd = open(path, O_RDWR | O_CLOEXEC);
	if (*fd < 0) {
		int rc = -errno;

		unlink(path);
		return rc;
	}
	/* A user whose share of pipe memory is used up gets a smaller pipe. */
	fcntl(*fd, F_SETPIPE_SZ, PIPE_SIZE);
	shca_event_note(*fd);
	return id;
}

void shca_event_destroy(struct shca_fabric *fabric, unsigned proc, uint32_t id, int fd)
{
	char path[SHCA_PATH_ROOM];

	fifo_path(fabric, proc, id, path);
	unlink(path);
	forget_channel(fd);
	if (fd >= 0)
		close(fd);
}

/* Returns the writing end, which is opened if need be, or -1 if there is no such channel. The
 * caller holds the lock. */
static int writing_end(const struct shca_fabric *fabric, unsigned proc, uint32_t id)
{
	uint64_t generation = atomic_load(&fabric->hdr->procs[proc].state) >> 8;
	char path[SHCA_PATH_ROOM];
	unsigned i, oldest = 0;

	for (i = 0; i < CACHED; i++) {
		if (cache.at[i].used && cache.at[i].id == id && cache.at[i].proc == proc &&
		    cache.at[i].generation == generation && cache.at[i].hdr == fabric->hdr) {
			cache.at[i].used = ++cache.clock;
			return cache.at[i].fd;
		}
		if (cache.at[i].used < cache.at[oldest].used)
			oldest = i;
	}
	fifo_path(fabric, proc, id, path);
	i = oldest;
	if (cache.at[i].used) {
		/* In this order: a child that is forked in between must not close another's
		 * descriptor. */
		cache.at[i].used = 0;
		close(cache.at[i].fd);
	}
	/* Open for reading too, so that no write is ever a SIGPIPE. */
	cache.at[i].fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (cache.at[i].fd < 0)
		return -1;
	cache.at[i].hdr = fabric->hdr;
	cache.at[i].generation = generation;
	cache.at[i].proc = proc;
	cache.at[i].id = id;
	cache.at[i].used = ++cache.clock;
	return cache.at[i].fd;
}

void shca_event_send(struct shca_fabric *fabric, struct shca_hca *hca, unsigned proc, uint32_t id,
		     const struct shca_event *ev)
{
	ssize_t n = -1;

	if (proc < SHCA_MAX_PROCS) {
		int cancel = shca_cancel_hold(), fd;

		pthread_mutex_lock(&cache.lock);
		fd = writing_end(fabric, proc, id);
		if (fd >= 0)
			n = write(fd, ev, sizeof(*ev));
		pthread_mutex_unlock(&cache.lock);
		shca_cancel_restore(cancel);
	}
	if (n != sizeof(*ev)) {
		shca_count(hca, SHCA_C_EVENTS_LOST, 1);
	} else if (shca_fabric_clock(fabric)) {
		/* A reaper has no turn. */
		shca_actors_lock(fabric);
		shca_actors_event(shca_fabric_clock(fabric), proc);
		shca_actors_unlock(fabric);
	}
}

void shca_event_take(struct shca_fabric *fabric, unsigned proc, uint32_t id)
{
	int cancel = shca_cancel_hold(), fd;
	struct shca_event ev;

	pthread_mutex_lock(&cache.lock);
	fd = writing_end(fabric, proc, id);
	while (fd >= 0 && read(fd, &ev, sizeof(ev)) < 0 && errno == EINTR)
		;
	pthread_mutex_unlock(&cache.lock);
	shca_cancel_restore(cancel);
}

void shca_event_reset(void)
{
	unsigned i;

	/* In a forked child, a lock held by another thread would never be released. */
	pthread_mutex_init(&cache.lock, NULL);
	for (i = 0; i < CACHED; i++) {
		if (cache.at[i].used)
			close(cache.at[i].fd);
		cache.at[i].used = 0;
	}
	for (i = 0; i < KNOWN_FDS; i++)
		forget_channel((int)i);
}

void shca_event_forget(struct shca_fabric *fabric, struct shca_hca *hca, unsigned proc, uint32_t id,
		       uint32_t idx, uint64_t number)
{
	/* Under the lock. All that the pipe holds, because the kernel frees a page of a full one
	 * only when the page was read whole. */
	static struct shca_event ev[PIPE_SIZE / sizeof(struct shca_event)];
	int cancel = shca_cancel_hold(), queued = 0, fd;

	pthread_mutex_lock(&cache.lock);
	fd = writing_end(fabric, proc, id);
	/* Each record is taken out once, and records of other objects go back behind. Records
	 * that come meanwhile stay. */
	if (fd >= 0 && !ioctl(fd, FIONREAD, &queued)) {
		while (queued > 0) {
			size_t want = (size_t)queued < sizeof(ev) ? (size_t)queued : sizeof(ev);
			ssize_t got = read(fd, ev, want);

			for (ssize_t i = 0; i < got / (ssize_t)sizeof(*ev); i++)
				if ((ev[i].idx != idx || ev[i].number != number) &&
				    write(fd, &ev[i], sizeof(*ev)) != sizeof(*ev))
					shca_count(hca, SHCA_C_EVENTS_LOST, 1);
			if (got <= 0)
				break;
			queued -= (int)got;
		}
	}
	pthread_mutex_unlock(&cache.lock);
	shca_cancel_restore(cancel);
}

static void send_about_qp(struct shca_fabric *fabric, struct shca_hca *hca,
			  const struct shca_qp_entry *entry, unsigned proc, uint32_t channel,
			  enum ibv_event_type type)
{
	struct shca_event ev = {
		.kind = type,
		.idx = shca_table_index(fabric, &hca->tables[SHCA_QP], entry),
		.number = shca_table_number(entry),
	};

	shca_event_send(fabric, hca, proc, channel, &ev);
}

void shca_event_send_qp(struct shca_fabric *fabric, struct shca_hca *hca,
			const struct shca_qp_entry *entry, enum ibv_event_type type)
{
	unsigned idx = shca_hca_index(fabric, hca),
		 owner = shca_word_owner(atomic_load(&entry->state_word));

	if (entry->type != IBV_QPT_XRC_RECV) {
		send_about_qp(fabric, hca, entry, owner, entry->async_channel, type);
		return;
	}
	for (unsigned p = 0; p < SHCA_MAX_PROCS; p++) {
		uint32_t channel = atomic_load(&fabric->hdr->procs[p].tgt_channel[idx]);

		/* The QP's creator gets the event in the context in which the QP was made. */
		if (p == owner)
			channel = entry->async_channel + 1;
		if (shca_opened_by(entry->openers, p) && channel)
			send_about_qp(fabric, hca, entry, p, channel - 1, type);
	}
}
