/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unmap.c - memory that is given back to the system while an operation is pending beside it. A
 * mapping that was transferred whole once may be registered as a whole. The program may
 * nevertheless give back all but the buffers of pending operations, and use the addresses for other
 * memory at once. In every case rank 1, the owner, has the memory, and rank 0, the peer, a buffer
 * of its own.
 *
 * unmap [PART...]: "ways", "many", "segments", "shared", "coll", "rma", "heap" or "threads";
 * without one all but the threads.
 */
#define _GNU_SOURCE /* memfd_create(), mremap() */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "check.h"

enum { OWNER = 1, PEER = 0 };
enum { TAG = 5, TAG_PENDING = 100 };
enum { UNITS = 8, HUGE_PAGE = 2 << 20, HUGE_UNITS = 4 };

static size_t page;

/* The other side's buffer, and memory that stays, each for the largest transfer. */
static unsigned char *mirror, *spare;
static const size_t most = (size_t)HUGE_UNITS * HUGE_PAGE;

/* ---- transfers ---- */

/* One stream of messages between owner and peer, for one thread of each. */
struct stream {
	MPI_Comm comm;
	unsigned seq;
	unsigned char *mirror;
};

static struct stream all;

static struct t_msg next_message(struct stream *s, int src, int tag)
{
	return (struct t_msg){src, tag, s->seq++};
}

/* Sends part of the owner's memory to the peer, and back other data, which it holds then. */
static struct t_msg exchange(struct stream *s, unsigned char *part, size_t bytes)
{
	struct t_msg to = next_message(s, OWNER, TAG), back = next_message(s, PEER, TAG);

	if (t_rank == OWNER) {
		t_fill(part, bytes, to);
		MPI_Send(part, (int)bytes, MPI_BYTE, PEER, TAG, s->comm);
		MPI_Recv(part, (int)bytes, MPI_BYTE, PEER, TAG, s->comm, MPI_STATUS_IGNORE);
		t_verify(part, bytes, back);
	} else if (t_rank == PEER) {
		memset(s->mirror, 0xee, bytes);
		MPI_Recv(s->mirror, (int)bytes, MPI_BYTE, OWNER, TAG, s->comm, MPI_STATUS_IGNORE);
		t_verify(s->mirror, bytes, to);
		t_fill(s->mirror, bytes, back);
		MPI_Send(s->mirror, (int)bytes, MPI_BYTE, OWNER, TAG, s->comm);
	}
	return back;
}

/* Operations of the owner that wait for the peer. */
enum { PENDING = UNITS };
struct pending {
	bool send;
	int count;
	MPI_Request request[PENDING];
	unsigned char *buf[PENDING];
	size_t bytes[PENDING];
	struct t_msg message[PENDING];
};

static void start(struct stream *s, struct pending *p, unsigned char *buf, size_t bytes)
{
	const int i = p->count++, tag = TAG_PENDING + i;

	p->bytes[i] = bytes;
	p->message[i] = next_message(s, p->send ? OWNER : PEER, tag);
	if (t_rank != OWNER)
		return;
	p->buf[i] = buf;
	if (p->send) {
		t_fill(buf, bytes, p->message[i]);
		MPI_Issend(buf, (int)bytes, MPI_BYTE, PEER, tag, s->comm, &p->request[i]);
	} else {
		memset(buf, 0xee, bytes);
		MPI_Irecv(buf, (int)bytes, MPI_BYTE, PEER, tag, s->comm, &p->request[i]);
	}
}

/* The peer does its part. */
static void finish(struct stream *s, struct pending *p)
{
	for (int i = 0; i < p->count; i++) {
		const int tag = TAG_PENDING + i, bytes = (int)p->bytes[i];

		if (t_rank == OWNER) {
			MPI_Wait(&p->request[i], MPI_STATUS_IGNORE);
			t_verify(p->buf[i], p->bytes[i], p->message[i]);
		} else if (t_rank == PEER && p->send) {
			memset(s->mirror, 0xee, p->bytes[i]);
			MPI_Recv(s->mirror, bytes, MPI_BYTE, OWNER, tag, s->comm,
				 MPI_STATUS_IGNORE);
			t_verify(s->mirror, p->bytes[i], p->message[i]);
		} else if (t_rank == PEER) {
			t_fill(s->mirror, p->bytes[i], p->message[i]);
			MPI_Send(s->mirror, bytes, MPI_BYTE, OWNER, tag, s->comm);
		}
	}
}

/* ---- kinds of memory ---- */

static void *checked(void *p)
{
	t_true(p != MAP_FAILED && p, "there is no memory: %s", strerror(errno));
	return p;
}

static unsigned char *map_anonymous(size_t bytes)
{
	return checked(
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static unsigned char *map_shared(size_t bytes)
{
	return checked(
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

static unsigned char *map_memfd(size_t bytes, int flags)
{
	int fd = memfd_create("unmap", MFD_CLOEXEC);
	void *p;

	t_true(fd >= 0 && !ftruncate(fd, (off_t)bytes), "there is no file: %s", strerror(errno));
	p = checked(mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0));
	close(fd);
	return p;
}

static unsigned char *map_file(size_t bytes)
{
	return map_memfd(bytes, MAP_SHARED);
}

static unsigned char *map_file_private(size_t bytes)
{
	return map_memfd(bytes, MAP_PRIVATE);
}

/* A System V segment of its own, which goes with its last attachment. */
static unsigned char *attach(void *at, size_t bytes, int flags)
{
	int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
	void *p;

	if (id < 0)
		return NULL;
	p = shmat(id, at, flags);
	shmctl(id, IPC_RMID, NULL);
	return p == (void *)-1 ? NULL : p;
}

static unsigned char *map_segment(size_t bytes)
{
	return checked(attach(NULL, bytes, 0));
}

/* Pages of 2 MiB from the pool that the system keeps for them. */
static void *try_huge(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
		    -1, 0);
}

static unsigned char *map_huge(size_t bytes)
{
	return checked(try_huge(bytes));
}

/* Pages that the system may join to such. */
static unsigned char *map_transparent(size_t bytes)
{
	unsigned char *p = map_anonymous(bytes + HUGE_PAGE);
	size_t head = HUGE_PAGE - (uintptr_t)p % HUGE_PAGE;

	munmap(p, head);
	munmap(p + head + bytes, HUGE_PAGE - head);
	madvise(p + head, bytes, MADV_HUGEPAGE);
	return p + head;
}

/* Kinds of memory, on which the ways to give it back depend. */
enum { ANONYMOUS = 1, SHARED = 2, FILE_COPY = 4, POOL = 8, ANY = 15, SMALL = ANY & ~POOL };

static const struct memory {
	const char *name;
	int kind;
	size_t unit; /* of the larger mappings, in pages */
	unsigned char *(*map)(size_t bytes);
} memories[] = {
	{"anonymous", ANONYMOUS, 32, map_anonymous},
	{"shared", SHARED, 32, map_shared},
	{"file", SHARED, 32, map_file},
	{"private file", FILE_COPY, 32, map_file_private},
	{"System V", SHARED, 32, map_segment},
	{"transparent huge pages", ANONYMOUS, 64, map_transparent},
	{"huge pages", POOL, 0, map_huge},
};

/* ---- ways to give a part of it back ---- */

/* [at, at + bytes) goes. map: where all of the memory begins. */
typedef bool give_fn(unsigned char *map, unsigned char *at, size_t bytes);

static bool give_munmap(unsigned char *map, unsigned char *at, size_t bytes)
{
	(void)map;
	return !munmap(at, bytes);
}

static bool give_dontneed(unsigned char *map, unsigned char *at, size_t bytes)
{
	(void)map;
	return !madvise(at, bytes, MADV_DONTNEED);
}

static bool give_free(unsigned char *map, unsigned char *at, size_t bytes)
{
	(void)map;
	return !madvise(at, bytes, MADV_FREE);
}

static bool give_remove(unsigned char *map, unsigned char *at, size_t bytes)
{
	(void)map;
	return !madvise(at, bytes, MADV_REMOVE);
}

static bool give_fixed(unsigned char *map, unsigned char *at, size_t bytes)
{
	(void)map;
	return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == at;
}

/* Another segment takes its place. */
static bool give_attach(unsigned char *map, unsigned char *at, size_t bytes)
{
	(void)map;
	return attach(at, bytes, SHM_REMAP) == at;
}

static bool give_moved(unsigned char *map, unsigned char *at, size_t bytes)
{
	void *to = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool moved;

	(void)map;
	if (to == MAP_FAILED)
		return false;
	moved = mremap(at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
	munmap(to, bytes);
	return moved;
}

/* The page in front stays, although the call names it. */
static bool give_shrunk(unsigned char *map, unsigned char *at, size_t bytes)
{
	if (at == map)
		return !munmap(at, bytes);
	return mremap(at - page, page + bytes, page, 0) == at - page;
}

static const struct way {
	const char *name;
	int kinds;
	bool stays_mapped;
	give_fn *give;
} ways[] = {
	{"munmap", ANY, false, give_munmap},         {"MADV_DONTNEED", ANY, true, give_dontneed},
	{"MADV_FREE", ANONYMOUS, true, give_free},   {"MADV_REMOVE", SHARED, true, give_remove},
	{"MAP_FIXED", ANY, true, give_fixed},        {"SHM_REMAP", SMALL, true, give_attach},
	{"mremap, moved", SMALL, false, give_moved}, {"mremap, shrunk", SMALL, false, give_shrunk},
};

static void give(const struct way *way, unsigned char *map, unsigned char *at, size_t bytes)
{
	if (t_rank == OWNER && !way->give(map, at, bytes))
		t_fail("%s: %s", way->name, strerror(errno));
}

/*
 * Returns the part of the owner's memory that is to be used at this address: memory that is mapped
 * anew by a call that no library hears of, or spare memory if something else in the process took
 * the place.
 */
static unsigned char *renew(unsigned char *at, size_t bytes)
{
	void *p;

	if (t_rank != OWNER)
		return NULL;
	p = mmap(at, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == at)
		return p;
	t_true(p == MAP_FAILED && errno == EEXIST, "there is no memory: %s", strerror(errno));
	return spare;
}

/* Registrations that were made until now, and attempts that failed. */
struct made {
	long long registrations, failures;
};

static struct made made_until_now(void)
{
	return (struct made){t_counter("registrations"), t_counter("reg_failed")};
}

/* A buffer of this size is registered in each protocol. */
static const size_t large = (size_t)256 << 10;

/* Checks that a registration was attempted: new memory was transferred, for which no registration
 * that was there can have been right. */
static void must_have_registered(struct made before)
{
	const struct made now = made_until_now();

	t_true(now.registrations < 0 || now.registrations > before.registrations ||
		       now.failures > before.failures,
	       "new memory was transferred by an old registration");
}

/* ---- "ways": a part goes, and new memory takes its place, while operations are pending ---- */

/* A letter for each unit: x goes, b begins with the buffer of a pending operation. */
static const char *const layouts[] = {
	"xxxxb...", "...bxxxx", "b.xxxx.b", "xxxbxxxx", ".xb.xb.b", "xbbbbxxx", "bxbxbxbx",
};

enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

struct part {
	unsigned char *at;
	size_t bytes;
	struct t_msg message;
};

/* Units that go, or stay, by one call. */
static size_t run_of(const char *layout, size_t i)
{
	size_t n = 1;

	while (layout[i] == 'x' && layout[i + n] == 'x')
		n++;
	return n;
}

/* Transfers all parts but the buffers in use; those that went are mapped anew before. */
static void use_rest(const struct way *way, const char *layout, unsigned char *map, size_t unit,
		     struct part *parts)
{
	struct made made;
	size_t n;

	for (size_t i = 0; layout[i]; i += n) {
		struct part *part = &parts[i];

		n = run_of(layout, i);
		if (layout[i] == 'b')
			continue;
		part->at = map + i * unit;
		part->bytes = n * unit;
		if (layout[i] == 'x' && !way->stays_mapped)
			part->at = renew(part->at, part->bytes);
		made = made_until_now();
		part->message = exchange(&all, part->at, part->bytes);
		if (t_rank == OWNER && layout[i] == 'x' && part->bytes >= large &&
		    part->at != spare)
			must_have_registered(made);
	}
}

static void give_parts(const struct memory *memory, const struct way *way, const char *layout,
		       size_t unit, size_t bytes, bool send)
{
	const size_t size = strlen(layout) * unit;
	unsigned char *map = t_rank == OWNER ? memory->map(size) : mirror;
	struct pending pending = {.send = send};
	struct part parts[UNITS] = {{0}};

	exchange(&all, map, size);
	for (size_t i = 0; layout[i]; i++)
		if (layout[i] == 'b')
			start(&all, &pending, map + i * unit, bytes);
	for (size_t i = 0; layout[i]; i += run_of(layout, i))
		if (layout[i] == 'x')
			give(way, map, map + i * unit, run_of(layout, i) * unit);
	use_rest(way, layout, map, unit, parts);
	finish(&all, &pending);
	for (size_t i = 0; i < UNITS && t_rank == OWNER; i++)
		if (parts[i].at && parts[i].at != spare)
			t_verify(parts[i].at, parts[i].bytes, parts[i].message);
	if (t_rank == OWNER)
		munmap(map, size);
}

/* Returns how much of the owner's memory is registered. The transfer before deregisters what was
 * given back. */
static long long registered(void)
{
	exchange(&all, spare, 2 * large);
	return t_counter("registered_bytes");
}

static void check_way(const struct memory *memory, const struct way *way)
{
	long long before, after;

	t_begin("unmap: %s, %s", memory->name, way->name);
	before = registered();
	for (int send = 0; send < 2; send++) {
		if (memory->kind == POOL) {
			give_parts(memory, way, "xxb.", HUGE_PAGE, page, send);
			give_parts(memory, way, ".bxx", HUGE_PAGE, HUGE_PAGE, send);
			continue;
		}
		give_parts(memory, way, "xb", page, page, send);
		give_parts(memory, way, "bx", page, page, send);
		for (int i = 0; i < LAYOUTS; i++) {
			const size_t unit = memory->unit * page;

			/* The first memory has all of them, the others a part, by turns. */
			if (memory != memories && (i + (way - ways)) % 3)
				continue;
			give_parts(memory, way, layouts[i], page, page, send);
			/* Rendezvous, in which a short message waits beside long ones, or a long
			 * one. */
			if (i < 2 || i % 2 == send)
				give_parts(memory, way, layouts[i], unit, i % 3 ? page : unit,
					   send);
		}
	}
	after = registered();
	t_true(t_rank != OWNER || after <= before, "%lld bytes are registered, not %lld", after,
	       before);
	t_end();
}

static bool is_available(const struct memory *memory)
{
	int available = 1;
	void *p;

	if (memory->kind == POOL && t_rank == OWNER) {
		p = try_huge(most);
		available = p != MAP_FAILED;
		if (available)
			munmap(p, most);
	}
	MPI_Bcast(&available, 1, MPI_INT, OWNER, MPI_COMM_WORLD);
	if (!available)
		t_skip("unmap: huge pages",
		       "the system keeps too few (/proc/sys/vm/nr_hugepages; %d of 2 MiB)",
		       HUGE_UNITS);
	return available;
}

static void check_ways(void)
{
	for (size_t m = 0; m < sizeof(memories) / sizeof(memories[0]); m++) {
		if (!is_available(&memories[m]))
			continue;
		for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
			if (ways[w].kinds & memories[m].kind)
				check_way(&memories[m], &ways[w]);
	}
}

/* ---- "many": more pieces go at a time than anybody keeps a list of ---- */

static void check_many(void)
{
	enum { PIECES = 300 };
	const size_t size = 2 * PIECES * page;
	unsigned char *map = t_rank == OWNER ? map_anonymous(size) : mirror;
	unsigned char *other = t_rank == OWNER ? map_anonymous(size) : mirror, *at;
	struct pending pending = {0};

	t_begin("unmap: many pieces");
	for (int round = 0; round < 4; round++) {
		exchange(&all, map, size);
		exchange(&all, other, size);
		pending = (struct pending){.send = round % 2};
		start(&all, &pending, map, page);
		start(&all, &pending, map + size - 2 * page, page);
		for (int i = 0; i < PIECES; i++) {
			give(&ways[0], map, map + (size_t)(2 * i + 1) * page, page);
			/* Memory that no operation uses goes as well, in another order. */
			give(&ways[0], other, other + (size_t)(2 * (i * 7 % PIECES)) * page, page);
		}
		for (int i = 0; i < PIECES; i++) {
			at = renew(map + (size_t)(2 * i + 1) * page, page);
			exchange(&all, at, page);
			at = renew(other + (size_t)(2 * i) * page, page);
			exchange(&all, at, page);
		}
		finish(&all, &pending);
	}
	t_end();
	if (t_rank == OWNER) {
		munmap(map, size);
		munmap(other, size);
	}
}

/* ---- "segments": System V segments are detached as a whole ---- */

/* Two that are neighbours, and so one buffer. One goes, and another takes its place. */
static void replace_segment(bool upper, bool send)
{
	const size_t size = 2 * large, gone = upper ? size : 0, left = upper ? 0 : size;
	unsigned char *map = mirror;
	struct pending pending = {.send = send};

	if (t_rank == OWNER) {
		map = map_anonymous(2 * size);
		for (int i = 0; i < 2; i++)
			t_true(attach(map + i * size, size, SHM_REMAP), "there is no segment");
	}
	exchange(&all, map, 2 * size);
	start(&all, &pending, map + left, page);
	start(&all, &pending, map + left + size / 2, size / 2);
	if (t_rank == OWNER) {
		t_true(!shmdt(map + gone), "shmdt: %s", strerror(errno));
		t_true(attach(map + gone, size, 0), "there is no segment");
	}
	exchange(&all, map + gone, size);
	finish(&all, &pending);
	exchange(&all, map, 2 * size);
	if (t_rank == OWNER) {
		shmdt(map);
		shmdt(map + size);
	}
}

/* One that is attached twice is registered by both addresses. One of them goes. */
static void detach_one(bool send)
{
	const size_t size = 2 * large;
	unsigned char *map = mirror, *again = mirror;
	struct pending pending = {.send = send};
	int id;

	if (t_rank == OWNER) {
		id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
		t_true(id >= 0, "there is no segment");
		map = shmat(id, NULL, 0);
		again = shmat(id, NULL, 0);
		shmctl(id, IPC_RMID, NULL);
		t_true(map != (void *)-1 && again != (void *)-1, "there is no segment");
	}
	exchange(&all, map, size);
	exchange(&all, again, size);
	start(&all, &pending, map + size / 2, page);
	if (t_rank == OWNER) {
		t_true(!shmdt(again), "shmdt: %s", strerror(errno));
		t_true(attach(again, size, 0), "there is no segment");
	}
	exchange(&all, again, size);
	exchange(&all, map, size / 2);
	finish(&all, &pending);
	if (t_rank == OWNER) {
		shmdt(map);
		shmdt(again);
	}
}

static void check_segments(void)
{
	t_begin("unmap: System V, one of two neighbours detached");
	for (int i = 0; i < 4; i++)
		replace_segment(i & 1, i & 2);
	t_end();
	t_begin("unmap: System V, one of two attachments detached");
	for (int i = 0; i < 2; i++)
		detach_one(i);
	t_end();
}

/* ---- "shared": what was registered for one operation serves a second one, which outlasts it ----
 */

static void share(const struct memory *memory, const struct way *way)
{
	const size_t size = 4 * large, half = size / 2;
	unsigned char *map = t_rank == OWNER ? memory->map(size) : mirror, *at = map;
	struct pending whole = {.send = true};
	MPI_Request second;
	struct made made;

	t_begin("unmap: a registration of two sends, %s, %s", memory->name, way->name);
	start(&all, &whole, map, size);
	if (t_rank == OWNER) {
		/* They send the same bytes, so the second doesn't fill its buffer. */
		MPI_Issend(map + half, (int)large, MPI_BYTE, PEER, TAG_PENDING + 1, all.comm,
			   &second);
	}
	finish(&all, &whole);
	give(way, map, map, half);
	if (!way->stays_mapped)
		at = renew(map, half);
	made = made_until_now();
	exchange(&all, at, half);
	if (t_rank == OWNER && at != spare)
		must_have_registered(made);
	if (t_rank == OWNER) {
		MPI_Wait(&second, MPI_STATUS_IGNORE);
	} else if (t_rank == PEER) {
		t_fill(mirror, size, whole.message[0]);
		memset(mirror, 0xee, half);
		MPI_Recv(mirror, (int)large, MPI_BYTE, OWNER, TAG_PENDING + 1, all.comm,
			 MPI_STATUS_IGNORE);
		t_true(!memcmp(mirror, mirror + half, large), "other data came");
	}
	t_end();
	if (t_rank == OWNER)
		munmap(map, size);
}

static void check_shared(void)
{
	for (size_t m = 0; m < sizeof(memories) / sizeof(memories[0]); m++)
		for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
			if (memories[m].kind != POOL && ways[w].kinds & memories[m].kind)
				share(&memories[m], &ways[w]);
}

/* ---- "coll", "rma": operations of the other kinds on a part ---- */

/* A collective on the upper half waits for the peer, while the lower half goes. */
static void check_coll(void)
{
	const size_t size = 8 * large, half = size / 2, n = large / sizeof(uint32_t);
	unsigned char *map = t_rank == OWNER ? map_anonymous(size) : mirror, *at;
	uint32_t *in = (uint32_t *)(map + half), *out = in + n, *other = out + n;
	MPI_Request request[3];

	t_begin("unmap: nonblocking collectives pending");
	for (int round = 0; round < 8; round++) {
		const struct way *way = round % 2 ? &ways[1] : &ways[0];
		struct t_msg message = next_message(&all, PEER, TAG);

		exchange(&all, map, size);
		at = map;
		for (int late = 0; late < 2; late++) {
			/* The owner begins. */
			if (t_rank == (late ? PEER : OWNER)) {
				for (size_t i = 0; i < n; i++)
					in[i] = (uint32_t)(t_rank + 1) * (uint32_t)i;
				if (t_rank == PEER)
					t_fill(other, large, message);
				MPI_Ibcast(other, (int)large, MPI_BYTE, PEER, MPI_COMM_WORLD,
					   &request[0]);
				MPI_Iallreduce(in, out, (int)n, MPI_UINT32_T, MPI_SUM,
					       MPI_COMM_WORLD, &request[1]);
				MPI_Ibarrier(MPI_COMM_WORLD, &request[2]);
			}
			if (late)
				continue;
			give(way, map, map, half);
			if (!way->stays_mapped)
				at = renew(map, half);
			exchange(&all, at, half);
		}
		MPI_Waitall(3, request, MPI_STATUSES_IGNORE);
		if (t_rank == OWNER)
			t_verify(other, large, message);
		for (size_t i = 0; i < n; i++)
			t_true(out[i] == 3 * (uint32_t)i, "element %zu of the sum is %u", i,
			       out[i]);
	}
	t_end();
	t_begin("unmap: collectives between");
	for (int round = 0; round < 8; round++) {
		struct t_msg message = next_message(&all, OWNER, TAG);

		exchange(&all, map, size);
		give(&ways[0], map, map, half);
		at = renew(map, half);
		if (t_rank == OWNER)
			t_fill(at, half, message);
		else if (t_rank == PEER)
			at = mirror;
		MPI_Bcast(at, (int)half, MPI_BYTE, OWNER, MPI_COMM_WORLD);
		t_verify(at, half, message);
	}
	t_end();
	if (t_rank == OWNER)
		munmap(map, size);
}

/* The window is the upper half, and so is what the owner puts. */
static void check_rma(void)
{
	const size_t size = 8 * large, half = size / 2, quarter = size / 4;
	unsigned char *map = t_rank == OWNER ? map_anonymous(size) : spare, *at;
	MPI_Win win;

	t_begin("unmap: a window in a part");
	exchange(&all, t_rank == OWNER ? map : mirror, size);
	MPI_Win_create(map + half, (MPI_Aint)half, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for (int round = 0; round < 16; round++) {
		const struct way *way = &ways[round % 2];
		struct t_msg here = next_message(&all, t_rank, TAG);
		struct t_msg there = here;
		const size_t bytes = round % 4 < 2 ? quarter : page;

		there.src = !t_rank;
		exchange(&all, t_rank == OWNER ? map : mirror, half);
		/* Each puts its second part of the window into the first part of the other's. */
		t_fill(map + half + quarter, bytes, here);
		MPI_Win_fence(0, win);
		MPI_Put(map + half + quarter, (int)bytes, MPI_BYTE, !t_rank, 0, (int)bytes,
			MPI_BYTE, win);
		give(way, map, map, half);
		at = way->stays_mapped ? map : renew(map, half);
		MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
		t_verify(map + half, bytes, there);
		exchange(&all, t_rank == OWNER ? at : mirror, half);
		/* The peer gets and puts while the owner gives back and makes calls of others. */
		if (t_rank == PEER) {
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, OWNER, 0, win);
			MPI_Get(mirror, (int)bytes, MPI_BYTE, OWNER, (MPI_Aint)quarter, (int)bytes,
				MPI_BYTE, win);
			MPI_Win_unlock(OWNER, win);
			t_verify(mirror, bytes, there);
			MPI_Win_lock(MPI_LOCK_EXCLUSIVE, OWNER, 0, win);
			MPI_Put(mirror, (int)bytes, MPI_BYTE, OWNER, 0, (int)bytes, MPI_BYTE, win);
			MPI_Win_unlock(OWNER, win);
		} else if (t_rank == OWNER) {
			give(way, map, map, half);
			at = way->stays_mapped ? map : renew(map, half);
		}
		exchange(&all, t_rank == OWNER ? at : mirror, half);
		if (t_rank == OWNER) {
			MPI_Win_lock(MPI_LOCK_SHARED, OWNER, 0, win);
			t_verify(map + half, bytes, here);
			MPI_Win_unlock(OWNER, win);
		}
	}
	MPI_Win_free(&win);
	t_end();
	if (t_rank == OWNER)
		munmap(map, size);
}

/* ---- "heap": an allocator gives memory back when it likes ---- */

/* Other allocators' functions, where one of them is preloaded. */
int mallctl(const char *name, void *old, size_t *old_len, void *new, size_t new_len)
	__attribute__((weak));
void MallocExtension_ReleaseFreeMemory(void) __attribute__((weak));

/* The allocator gives back what is free. */
static void trim(void)
{
	if (mallctl)
		mallctl("arena.4096.purge", NULL, NULL, NULL, 0); /* of all arenas */
	if (MallocExtension_ReleaseFreeMemory)
		MallocExtension_ReleaseFreeMemory();
	malloc_trim(0);
}

static void check_heap(void)
{
	enum { ROUNDS = 60, BLOCKS = 64, USED = 4 };
	unsigned char *block[BLOCKS] = {0};
	struct t_rng rng = t_rng(1, 2, 3); /* the ranks' choices are alike */
	size_t bytes[BLOCKS];

#ifdef M_TRIM_THRESHOLD
	/* glibc's: large blocks come from the heap, of which it gives back what it can. */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 10);
#endif
	t_begin("unmap: the heap");
	for (int round = 0; round < ROUNDS; round++) {
		struct pending pending = {.send = round % 2};
		/* The second one keeps the first from the heap's end, which is given back soon. */
		unsigned char *large_block = t_alloc(8 * large), *end = t_alloc(page);
		int order[BLOCKS], used;

		/* Whole pages of it are registered as one, and then are other blocks. */
		exchange(&all, large_block + (page - (uintptr_t)large_block % page) % page,
			 8 * large - page);
		free(large_block);
		for (int i = 0; i < BLOCKS; i++) {
			bytes[i] = page + (size_t)t_below(&rng, (int)(large / 2));
			block[i] = t_alloc(bytes[i]);
			order[i] = i;
		}
		t_shuffle(&rng, order, BLOCKS);
		used = 1 + t_below(&rng, USED);
		for (int i = 0; i < used; i++)
			start(&all, &pending, block[order[i]],
			      t_chance(&rng, 50) ? page : bytes[order[i]]);
		for (int i = used; i < BLOCKS; i++)
			free(block[order[i]]);
		trim();
		for (int i = used; i < BLOCKS; i++) {
			block[order[i]] = t_alloc(bytes[order[i]]);
			if (i % 3 == 0)
				exchange(&all, block[order[i]], bytes[order[i]]);
		}
		finish(&all, &pending);
		for (int i = 0; i < BLOCKS; i++)
			free(block[i]);
		free(end);
	}
	t_end();
}

/* ---- "threads": one gives back what is beside another's buffers ---- */

struct thread {
	struct stream stream;
	unsigned char *map;
	int rounds;
};

/* Pages of the upper half, in turn. */
static void *communicate(void *arg)
{
	struct thread *t = arg;

	for (int i = 0; i < t->rounds; i++) {
		unsigned char *at = t_rank == OWNER ? t->map + (size_t)(i % 16) * page : NULL;

		exchange(&t->stream, at, i % 8 == 7 ? 2 * large : page);
	}
	return NULL;
}

/* Pieces of the lower half, which it transfers in between. */
static void *give_and_use(void *arg)
{
	struct thread *t = arg;
	const size_t piece = large / 4;
	/* Ways by which no other mapping can take the place. */
	const struct way *const kinds[] = {&ways[1], &ways[4], &ways[5]};

	for (int i = 0; i < t->rounds; i++) {
		unsigned char *at = t_rank == OWNER ? t->map + (size_t)(i % 8) * piece : NULL;

		give(kinds[i % 3], t->map, at, piece);
		if (t_rank == OWNER)
			munmap(map_anonymous(piece), piece);
		exchange(&t->stream, at, i % 2 ? piece : page);
	}
	return NULL;
}

static void check_threads(int rounds)
{
	const size_t half = 2 * large + 16 * page, size = 2 * half;
	struct thread t[2] = {{.rounds = 40}, {.rounds = 40}};
	pthread_t id[2];

	for (int i = 0; i < 2; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &t[i].stream.comm);
		t[i].stream.mirror = t_alloc(half);
	}
	t_begin("unmap: threads");
	for (int round = 0; round < rounds; round++) {
		unsigned char *map = t_rank == OWNER ? map_anonymous(size) : mirror;
		struct pending pending = {.send = round % 2};

		exchange(&all, map, size);
		start(&all, &pending, map + size - page, page);
		t[0].map = map + half;
		t[1].map = map;
		pthread_create(&id[0], NULL, communicate, &t[0]);
		pthread_create(&id[1], NULL, give_and_use, &t[1]);
		for (int i = 0; i < 2; i++)
			pthread_join(id[i], NULL);
		finish(&all, &pending);
		if (t_rank == OWNER)
			munmap(map, size);
	}
	t_end();
	for (int i = 0; i < 2; i++) {
		MPI_Comm_free(&t[i].stream.comm);
		free(t[i].stream.mirror);
	}
}

/* ---- */

static const struct check {
	const char *name;
	void (*run)(void);
} checks[] = {
	{"ways", check_ways},     {"many", check_many}, {"segments", check_segments},
	{"shared", check_shared}, {"coll", check_coll}, {"rma", check_rma},
	{"heap", check_heap},
};

static bool is_wanted(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc == 1;
}

int main(int argc, char **argv)
{
	const bool threads = argc == 3 && !strcmp(argv[1], "threads");
	int level =
		t_init_thread(&argc, &argv, 2, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);

	page = (size_t)sysconf(_SC_PAGESIZE);
	mirror = map_anonymous(most);
	spare = map_anonymous(most);
	MPI_Comm_dup(MPI_COMM_WORLD, &all.comm);
	all.mirror = mirror;
	if (threads && level < MPI_THREAD_MULTIPLE)
		t_skip("unmap: threads", "MPI provides no MPI_THREAD_MULTIPLE");
	else if (threads)
		check_threads((int)t_arg(argc, argv, 2, 10));
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && !threads; i++)
		if (is_wanted(argc, argv, checks[i].name))
			checks[i].run();
	MPI_Comm_free(&all.comm);
	return t_finish();
}
