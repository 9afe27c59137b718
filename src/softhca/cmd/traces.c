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
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int fail(int rc, char *err, size_t errlen, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static int fail(int rc, char *err, size_t errlen, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err, errlen, format, args);
	va_end(args);
	return rc;
}

static void remove_parts(const char *folder)
{
	struct dirent *e;
	DIR *d = opendir(folder);

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(folder);
}

int shca_traces_begin(struct shca_traces *t, const char *file, char *err, size_t errlen)
{
	char *folder = NULL;
	int rc;

	/* The folder comes first: the file of another run that is under way must stay. */
	if (asprintf(&folder, "%s.parts", file) < 0)
		return fail(-ENOMEM, err, errlen, "There is no memory for a trace.");
	rc = mkdir(folder, 0700) ? -errno : 0;
	if (rc == -EEXIST)
		fail(rc, err, errlen,
		     "%s is there already: another run may be writing its trace there, or one was "
		     "killed. Name another file, or remove that folder.",
		     folder);
	else if (rc)
		fail(rc, err, errlen, "Can't make the folder %s for a trace (%s).", folder,
		     strerror(-rc));
	if (!rc && (!realpath(folder, t->parts) || !(t->out = fopen(file, "we")))) {
		rc = fail(-errno, err, errlen, "Can't write the trace to %s (%s).", file,
			  strerror(errno));
		rmdir(folder);
		t->parts[0] = '\0';
	}
	free(folder);
	return rc;
}

void shca_traces_drop(struct shca_traces *t)
{
	if (!t->parts[0])
		return;
	fclose(t->out);
	remove_parts(t->parts);
	t->parts[0] = '\0';
}

int shca_traces_link(const struct shca_traces *t, const char *dir)
{
	char path[PATH_MAX];

	if (!t->parts[0])
		return 0;
	snprintf(path, sizeof(path), "%s/" SHCA_TRACE_LINK, dir);
	return symlink(t->parts, path) ? -errno : 0;
}

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
static int map_parts(const char *folder, struct writing *w)
{
	struct dirent **names;
	char path[PATH_MAX];
	int n = scandir(folder, &names, NULL, versionsort);

	if (n < 0)
		return -errno;
	w->parts = calloc((size_t)n + 1, sizeof(*w->parts));
	for (int i = 0; i < n; i++) {
		int len = snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);

		if (w->parts && len < (int)sizeof(path) && names[i]->d_name[0] != '.' &&
		    map_part(path, &w->parts[w->n]) == 0)
			w->n++;
		free(names[i]);
	}
	free(names);
	return w->parts ? 0 : -ENOMEM;
}

/* Returns the time at which a record begins. */
static uint64_t begins(const struct shca_trace_record *r)
{
	return r->held && r->held < r->from ? r->held : r->from;
}

static void find_zero(struct writing *w)
{
	w->zero = UINT64_MAX;
	for (size_t p = 0; p < w->n; p++)
		for (size_t i = 1; i < w->parts[p].n; i++)
			if (begins(&w->parts[p].records[i]) < w->zero)
				w->zero = begins(&w->parts[p].records[i]);
}

/* Returns the number of the part with that process slot, + 1, or 0: the last one, if several
 * processes had the slot. */
static size_t part_of(const struct writing *w, unsigned slot)
{
	size_t p = w->n;

	while (p && w->parts[p - 1].head->slot != slot)
		p--;
	return p;
}

/* ---------------------------------------------------------------- writing */

/* Writes the separator, and the fields that all events have. */
static void event(struct writing *w, const char *phase, size_t part, uint64_t at)
{
	uint64_t t = at > w->zero ? at - w->zero : 0;

	fprintf(w->out, "%s{\"ph\":\"%s\",\"pid\":%zu,\"ts\":%llu.%03llu", w->comma ? ",\n" : "",
		phase, part + 1, (unsigned long long)(t / 1000), (unsigned long long)(t % 1000));
	w->comma = true;
}

static void metadata(struct writing *w, const char *name, size_t part)
{
	event(w, "M", part, 0);
	fprintf(w->out, ",\"name\":\"%s\",\"args\":", name);
}

static void write_process(struct writing *w, size_t part)
{
	const struct shca_trace_head *h = w->parts[part].head;
	char name[96];
	json_t *o;

	if (h->rank >= 0)
		snprintf(name, sizeof(name), "rank %d, node %u: %.16s (pid %d)", h->rank, h->node,
			 h->comm, h->pid);
	else
		snprintf(name, sizeof(name), "node %u: %.16s (pid %d)", h->node, h->comm, h->pid);
	/* The name of a program may be no text. */
	o = json_pack("{s:s}", "name", name);
	if (!o)
		o = json_pack("{s:s}", "name", "?");
	metadata(w, "process_name", part);
	if (o)
		json_dumpf(o, w->out, JSON_COMPACT);
	else
		fprintf(w->out, "{}");
	fprintf(w->out, "}");
	json_decref(o);
	metadata(w, "process_sort_index", part);
	fprintf(w->out, "{\"sort_index\":%zu}}", h->rank >= 0 ? (size_t)h->rank : part);
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
	};

	return opcode < sizeof(names) / sizeof(*names) && names[opcode] ? names[opcode] : "?";
}

static void write_stretch(struct writing *w, size_t part, const struct shca_trace_record *r)
{
	static const char *const names[] = {[SHCA_TRACE_PROGRAM] = "program",
					    [SHCA_TRACE_POLLS] = "polls in vain",
					    [SHCA_TRACE_WAITS] = "waits",
					    [SHCA_TRACE_OUT] = "out in the real world"};
	uint64_t dur = r->to - r->from;

	event(w, "X", part, r->from);
	fprintf(w->out, ",\"dur\":%llu.%03llu,\"tid\":%d,\"cat\":\"thread\",\"name\":\"%s\"}",
		(unsigned long long)(dur / 1000), (unsigned long long)(dur % 1000), r->tid,
		names[r->kind]);
}

static void write_moment(struct writing *w, size_t part, const struct shca_trace_record *r)
{
	char name[64];

	if (r->kind == SHCA_TRACE_SEND)
		snprintf(name, sizeof(name), "post %s", opcode_name(r->opcode));
	else if (r->kind == SHCA_TRACE_RECV)
		snprintf(name, sizeof(name), "post receive");
	else
		snprintf(name, sizeof(name), "completion of a %s%s",
			 r->opcode & IBV_WC_RECV ? "receive" : "send",
			 r->status == IBV_WC_SUCCESS ? "" : " with an error");
	event(w, "i", part, r->from);
	fprintf(w->out,
		",\"s\":\"t\",\"tid\":%d,\"cat\":\"verbs\",\"name\":\"%s\",\"args\":{\"qp\":%u,"
		"\"srq\":%u,\"bytes\":%u,\"status\":%u}}",
		r->tid, name, r->qpn, r->srqn, r->bytes, r->status);
}

/* Writes both ends of a span of a message. */
static void write_span(struct writing *w, size_t part, const struct shca_trace_record *r,
		       const char *what, uint64_t from, uint64_t to)
{
	size_t peer = part_of(w, r->peer);

	event(w, "b", part, from);
	fprintf(w->out,
		",\"cat\":\"%s\",\"id\":%llu,\"name\":\"%s\",\"args\":{\"operation\":\"%s\","
		"\"qp\":%u,\"srq\":%u,\"bytes\":%u,\"status\":%u,\"from\":%zu,\"to\":%zu,"
		"\"posted_before_ns\":%llu}}",
		what, (unsigned long long)w->messages, what, opcode_name(r->opcode), r->qpn,
		r->srqn, r->bytes, r->status, part + 1, peer,
		(unsigned long long)(from > r->posted ? from - r->posted : 0));
	event(w, "e", part, to);
	fprintf(w->out, ",\"cat\":\"%s\",\"id\":%llu,\"name\":\"%s\"}", what,
		(unsigned long long)w->messages, what);
}

/* Writes a message: its wait for a receive, its way over the link, and that once more with the
 * process at the other end. */
static void write_message(struct writing *w, size_t part, const struct shca_trace_record *r)
{
	size_t peer = part_of(w, r->peer);

	w->messages++;
	if (r->held)
		write_span(w, part, r, "held", r->held, r->from > r->held ? r->from : r->held);
	write_span(w, part, r, "message", r->from, r->to);
	if (!peer)
		return;
	event(w, "b", peer - 1, r->from);
	fprintf(w->out,
		",\"cat\":\"arriving\",\"id\":%llu,\"name\":\"arriving\",\"args\":{\"bytes\":%u,"
		"\"srq\":%u,\"from\":%zu}}",
		(unsigned long long)w->messages, r->bytes, r->srqn, part + 1);
	event(w, "e", peer - 1, r->to);
	fprintf(w->out, ",\"cat\":\"arriving\",\"id\":%llu,\"name\":\"arriving\"}",
		(unsigned long long)w->messages);
}

static void write_part(struct writing *w, size_t part)
{
	write_process(w, part);
	for (size_t i = 1; i < w->parts[part].n; i++) {
		const struct shca_trace_record *r = &w->parts[part].records[i];

		switch ((enum shca_trace_kind)r->kind) {
		case SHCA_TRACE_PROGRAM:
		case SHCA_TRACE_POLLS:
		case SHCA_TRACE_WAITS:
		case SHCA_TRACE_OUT:
			write_stretch(w, part, r);
			break;
		case SHCA_TRACE_SEND:
		case SHCA_TRACE_RECV:
		case SHCA_TRACE_COMPLETION:
			write_moment(w, part, r);
			break;
		case SHCA_TRACE_MESSAGE:
			write_message(w, part, r);
			break;
		case SHCA_TRACE_NONE:
			break;
		}
	}
}

int shca_traces_end(struct shca_traces *t, char *err, size_t errlen)
{
	struct writing w = {.out = t->out};
	int rc = 0, failed;

	if (!t->parts[0])
		return 0;
	rc = map_parts(t->parts, &w);
	find_zero(&w);
	fprintf(w.out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	for (size_t p = 0; p < w.n; p++)
		write_part(&w, p);
	fprintf(w.out, "\n]}\n");
	for (size_t p = 0; p < w.n; p++)
		munmap((void *)(uintptr_t)w.parts[p].head, w.parts[p].len);
	free(w.parts);
	failed = ferror(t->out);
	if ((fclose(t->out) || failed) && !rc)
		rc = -EIO;
	if (!rc)
		remove_parts(t->parts);
	else
		fail(rc, err, errlen,
		     "Can't write the whole trace (%s). The records of the processes stay in %s.",
		     strerror(-rc), t->parts);
	return rc;
}
