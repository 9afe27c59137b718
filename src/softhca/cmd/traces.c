/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traces.c - from records to the trace event format. A process of the trace is a process of the
 * fabric. Its threads have their stretches and moments; messages are asynchronous events, which may
 * overlap: each is shown with its sender, and with its receiver once more.
 */
#define _GNU_SOURCE 1
#include "traces.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/fabric.h"
#include "fabric/say.h"
#include "fabric/trace.h"

/* The records of a process, mapped. */
struct part {
	const struct shca_trace_head *head;
	const struct shca_trace_record *records; /* the first is the head */
	size_t n, len;                           /* records, bytes */
};

struct writing {
	FILE *out;
	struct part *parts;
	size_t n;
	uint64_t zero;     /* earliest time */
	uint64_t messages; /* so far: the number of a message is its identity */
	bool comma;
};

/* ---------------------------------------------------------------- reading */

static int map_part(const char *path, struct part *part)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *mem = MAP_FAILED;

	if (fd < 0 || fstat(fd, &st)) {
		if (fd >= 0)
			close(fd);
		return -errno;
	}
	part->len = (size_t)st.st_size;
	if (part->len >= sizeof(*part->head))
		mem = mmap(NULL, part->len, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (mem == MAP_FAILED)
		return -EINVAL;
	part->head = mem;
	part->records = mem;
	if (part->head->magic != SHCA_TRACE_MAGIC) {
		munmap(mem, part->len);
		return -EINVAL;
	}
	for (part->n = 1; part->n < part->len / sizeof(*part->records); part->n++)
		if (part->records[part->n].kind == SHCA_TRACE_NONE)
			break;
	return 0;
}

/* Maps all files of the folder; one without a head, of a process that was killed early, has
 * nothing to show. */
static int map_parts(const char *folder, struct writing *writing)
{
	struct dirent **names;
	char path[PATH_MAX];
	int n = scandir(folder, &names, NULL, versionsort);

	if (n < 0)
		return -errno;
	writing->parts = calloc((size_t)n + 1, sizeof(*writing->parts));
	for (int i = 0; i < n; i++) {
		int len = snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);

		if (writing->parts && len < (int)sizeof(path) && names[i]->d_name[0] != '.' &&
		    map_part(path, &writing->parts[writing->n]) == 0)
			writing->n++;
		free(names[i]);
	}
	free(names);
	return writing->parts ? 0 : -ENOMEM;
}

/* Returns the time at which a record begins. */
static uint64_t begins(const struct shca_trace_record *record)
{
	return record->held && record->held < record->from ? record->held : record->from;
}

static void find_zero(struct writing *writing)
{
	writing->zero = UINT64_MAX;
	for (size_t p = 0; p < writing->n; p++)
		for (size_t i = 1; i < writing->parts[p].n; i++)
			if (begins(&writing->parts[p].records[i]) < writing->zero)
				writing->zero = begins(&writing->parts[p].records[i]);
}

/* Returns the number of the part with that process slot, + 1, or 0: the last one, if several
 * processes had the slot. */
static size_t part_of(const struct writing *writing, unsigned slot)
{
	size_t p = writing->n;

	while (p && writing->parts[p - 1].head->slot != slot)
		p--;
	return p;
}

/* ---------------------------------------------------------------- writing */

/* Writes the separator, and the fields that all events have. */
static void event(struct writing *writing, const char *phase, size_t part, uint64_t at)
{
	uint64_t t = at > writing->zero ? at - writing->zero : 0;

	fprintf(writing->out, "%s{\"ph\":\"%s\",\"pid\":%zu,\"ts\":%llu.%03llu",
		writing->comma ? ",\n" : "", phase, part + 1, (unsigned long long)(t / 1000),
		(unsigned long long)(t % 1000));
	writing->comma = true;
}

static void metadata(struct writing *writing, const char *name, size_t part)
{
	event(writing, "M", part, 0);
	fprintf(writing->out, ",\"name\":\"%s\",\"args\":", name);
}

static void write_process(struct writing *writing, size_t part)
{
	const struct shca_trace_head *head = writing->parts[part].head;
	char name[96];
	json_t *o;

	if (head->rank >= 0)
		snprintf(name, sizeof(name), "rank %d, node %u: %.16s (pid %d)", head->rank,
			 head->node, head->comm, head->pid);
	else
		snprintf(name, sizeof(name), "node %u: %.16s (pid %d)", head->node, head->comm,
			 head->pid);
	/* The name of a program may be no text. */
	o = json_pack("{s:s}", "name", name);
	if (!o)
		o = json_pack("{s:s}", "name", "?");
	metadata(writing, "process_name", part);
	if (o)
		json_dumpf(o, writing->out, JSON_COMPACT);
	else
		fprintf(writing->out, "{}");
	fprintf(writing->out, "}");
	json_decref(o);
	metadata(writing, "process_sort_index", part);
	fprintf(writing->out, "{\"sort_index\":%zu}}", head->rank >= 0 ? (size_t)head->rank : part);
}

static const char *opcode_name(unsigned opcode)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "write",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "write with immediate",
		[IBV_WR_SEND] = "send",
		[IBV_WR_SEND_WITH_IMM] = "send with immediate",
		[IBV_WR_RDMA_READ] = "read",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "compare and swap",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "fetch and add",
		[IBV_WR_LOCAL_INV] = "local invalidate",
		[IBV_WR_BIND_MW] = "bind",
		[IBV_WR_SEND_WITH_INV] = "send with invalidate",
	};

	return opcode < sizeof(names) / sizeof(*names) && names[opcode] ? names[opcode] : "?";
}

static void write_stretch(struct writing *writing, size_t part,
			  const struct shca_trace_record *record)
{
	static const char *const names[] = {[SHCA_TRACE_PROGRAM] = "program",
					    [SHCA_TRACE_POLLS] = "polls in vain",
					    [SHCA_TRACE_WAITS] = "waits",
					    [SHCA_TRACE_OUT] = "out in the real world"};
	uint64_t dur = record->to - record->from;

	event(writing, "X", part, record->from);
	fprintf(writing->out, ",\"dur\":%llu.%03llu,\"tid\":%d,\"cat\":\"thread\",\"name\":\"%s\"}",
		(unsigned long long)(dur / 1000), (unsigned long long)(dur % 1000), record->tid,
		names[record->kind]);
}

static void write_moment(struct writing *writing, size_t part,
			 const struct shca_trace_record *record)
{
	char name[64];

	if (record->kind == SHCA_TRACE_SEND)
		snprintf(name, sizeof(name), "post %s", opcode_name(record->opcode));
	else if (record->kind == SHCA_TRACE_RECV)
		snprintf(name, sizeof(name), "post receive");
	else
		snprintf(name, sizeof(name), "completion of a %s%s",
			 record->opcode & IBV_WC_RECV ? "receive" : "send",
			 record->status == IBV_WC_SUCCESS ? "" : " with an error");
	event(writing, "i", part, record->from);
	fprintf(writing->out,
		",\"s\":\"t\",\"tid\":%d,\"cat\":\"verbs\",\"name\":\"%s\",\"args\":{\"qp\":%u,"
		"\"srq\":%u,\"bytes\":%u,\"status\":%u}}",
		record->tid, name, record->qpn, record->srqn, record->bytes, record->status);
}

/* Writes both ends of a span of a message. */
static void write_span(struct writing *writing, size_t part, const struct shca_trace_record *record,
		       const char *what, uint64_t from, uint64_t to)
{
	size_t peer = part_of(writing, record->peer);

	event(writing, "b", part, from);
	fprintf(writing->out,
		",\"cat\":\"%s\",\"id\":%llu,\"name\":\"%s\",\"args\":{\"operation\":\"%s\","
		"\"qp\":%u,\"srq\":%u,\"bytes\":%u,\"status\":%u,\"from\":%zu,\"to\":%zu,"
		"\"posted_before_ns\":%llu}}",
		what, (unsigned long long)writing->messages, what, opcode_name(record->opcode),
		record->qpn, record->srqn, record->bytes, record->status, part + 1, peer,
		(unsigned long long)(from > record->posted ? from - record->posted : 0));
	event(writing, "e", part, to);
	fprintf(writing->out, ",\"cat\":\"%s\",\"id\":%llu,\"name\":\"%s\"}", what,
		(unsigned long long)writing->messages, what);
}

/* Writes a message: its wait for a receive, its way over the link, and that once more with the
 * process at the other end. */
static void write_message(struct writing *writing, size_t part,
			  const struct shca_trace_record *record)
{
	size_t peer = part_of(writing, record->peer);

	writing->messages++;
	if (record->held)
		write_span(writing, part, record, "held", record->held,
			   record->from > record->held ? record->from : record->held);
	write_span(writing, part, record, "message", record->from, record->to);
	if (!peer)
		return;
	event(writing, "b", peer - 1, record->from);
	fprintf(writing->out,
		",\"cat\":\"arriving\",\"id\":%llu,\"name\":\"arriving\",\"args\":{\"bytes\":%u,"
		"\"srq\":%u,\"from\":%zu}}",
		(unsigned long long)writing->messages, record->bytes, record->srqn, part + 1);
	event(writing, "e", peer - 1, record->to);
	fprintf(writing->out, ",\"cat\":\"arriving\",\"id\":%llu,\"name\":\"arriving\"}",
		(unsigned long long)writing->messages);
}

static void write_part(struct writing *writing, size_t part)
{
	write_process(writing, part);
	for (size_t i = 1; i < writing->parts[part].n; i++) {
		const struct shca_trace_record *record = &writing->parts[part].records[i];

		switch ((enum shca_trace_kind)record->kind) {
		case SHCA_TRACE_PROGRAM:
		case SHCA_TRACE_POLLS:
		case SHCA_TRACE_WAITS:
		case SHCA_TRACE_OUT:
			write_stretch(writing, part, record);
			break;
		case SHCA_TRACE_SEND:
		case SHCA_TRACE_RECV:
		case SHCA_TRACE_COMPLETION:
			write_moment(writing, part, record);
			break;
		case SHCA_TRACE_MESSAGE:
			write_message(writing, part, record);
			break;
		case SHCA_TRACE_NONE:
			break;
		}
	}
}

int shca_traces_write(struct shca_parts *parts)
{
	struct writing writing = {.out = parts->out};
	int rc = map_parts(parts->folder, &writing);

	find_zero(&writing);
	fprintf(writing.out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	for (size_t p = 0; p < writing.n; p++)
		write_part(&writing, p);
	fprintf(writing.out, "\n]}\n");
	for (size_t p = 0; p < writing.n; p++)
		munmap((void *)(uintptr_t)writing.parts[p].head, writing.parts[p].len);
	free(writing.parts);
	return rc;
}
