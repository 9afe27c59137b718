/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - see check.h. */
#define _GNU_SOURCE /* RTLD_NEXT */

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

int t_rank, t_size;
int t_left, t_right;

static char name[128] = "start"; /* of the check that runs */
static const char *volatile doing = "";
static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
static MPI_Comm comm; /* for the checks themselves: no test uses it */

/* Prints a line by one write, so that lines of several ranks don't mix. */
static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n >= (int)sizeof(line) - 1)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (write(STDOUT_FILENO, line, (size_t)n) < 0)
		_exit(1);
}

static unsigned deadline(void)
{
	const char *s = getenv("TEST_DEADLINE");

	return s && atoi(s) > 0 ? (unsigned)atoi(s) : T_DEADLINE_S;
}

/* Says where this rank hangs. All ranks get here at about the same time, so each waits a second for
 * the others' lines before it exits. */
static void on_alarm(int sig)
{
	static volatile sig_atomic_t said;

	(void)sig;
	if (said)
		_exit(1);
	said = 1;
	say("%s %s - rank %d: no end after %d s%s%s", t_rank == 0 ? "not ok" : "#", name, t_rank,
	    (int)deadline(), *doing ? ", in: " : "", doing);
	alarm(1);
}

int t_init_thread(int *argc, char ***argv, int ranks, int level)
{
	int provided;

	signal(SIGALRM, on_alarm);
	alarm(deadline());
	MPI_Init_thread(argc, argv, level, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &t_rank);
	MPI_Comm_size(MPI_COMM_WORLD, &t_size);
	t_left = (t_rank + t_size - 1) % t_size;
	t_right = (t_rank + 1) % t_size;
	t_true(t_size >= ranks, "it needs %d ranks at least", ranks);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	return provided;
}

void t_init(int *argc, char ***argv, int ranks)
{
	t_init_thread(argc, argv, ranks, MPI_THREAD_SINGLE);
}

int t_init_threads(int *argc, char ***argv, int ranks, int index, int most)
{
	long n = t_arg(*argc, *argv, index, 0);
	int level = n ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;

	if (t_init_thread(argc, argv, ranks, level) < level)
		return 0;
	return n < most ? (int)n : most;
}

int t_finish(void)
{
	snprintf(name, sizeof(name), "MPI_Finalize");
	MPI_Comm_free(&comm);
	if (session != MPI_T_PVAR_SESSION_NULL) {
		MPI_T_pvar_session_free(&session);
		MPI_T_finalize();
	}
	MPI_Finalize();
	return 0;
}

void t_begin(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	doing = "";
	alarm(deadline());
}

void t_end(void)
{
	doing = "the barrier at the check's end";
	MPI_Barrier(comm);
	if (t_rank == 0)
		say("ok %s", name);
}

void t_skip(const char *skipped, const char *fmt, ...)
{
	char why[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (t_rank == 0)
		say("ok %s # SKIP %s", skipped, why);
}

void t_doing(const char *activity)
{
	doing = activity;
}

void t_fail_at(const char *file, int line, const char *fmt, ...)
{
	char why[768];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	say("not ok %s - rank %d: %s (%s:%d)", name, t_rank, why, file, line);
	MPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Returns the number from which word() derives the 64-bit words of a message. */
static uint64_t content(struct t_msg m)
{
	return mix(((uint64_t)(uint32_t)m.src << 40) ^ ((uint64_t)m.seq << 20) ^ (uint32_t)m.tag);
}

static uint64_t word(uint64_t start, size_t index)
{
	return (start + index) * 0x9e3779b97f4a7c15u;
}

void t_fill(void *buf, size_t bytes, struct t_msg m)
{
	uint64_t start = content(m), w;
	unsigned char *p = buf;
	size_t i;

	for (i = 0; i < bytes / 8; i++) {
		w = word(start, i);
		memcpy(p + 8 * i, &w, 8);
	}
	w = word(start, i);
	memcpy(p + 8 * i, &w, bytes % 8);
}

void t_verify(const void *buf, size_t bytes, struct t_msg m)
{
	uint64_t start = content(m), w;
	const unsigned char *p = buf;
	unsigned char want[8];
	size_t i, off, n;

	for (i = 0; 8 * i < bytes; i++) {
		n = bytes - 8 * i < 8 ? bytes - 8 * i : 8;
		w = word(start, i);
		if (memcmp(p + 8 * i, &w, n) == 0)
			continue;
		memcpy(want, &w, 8);
		for (off = 0; p[8 * i + off] == want[off];)
			off++;
		t_fail("message %u of %zu bytes from rank %d with tag %d: byte %zu is 0x%02x, not "
		       "0x%02x",
		       m.seq, bytes, m.src, m.tag, 8 * i + off, p[8 * i + off], want[off]);
	}
}

void t_untouched(const void *buf, size_t bytes, unsigned char value)
{
	const unsigned char *p = buf;
	size_t i;

	for (i = 0; i < bytes; i++)
		if (p[i] != value)
			t_fail("byte %zu of %zu was written that no message has: 0x%02x, not "
			       "0x%02x",
			       i, bytes, p[i], value);
}

/* Returns true if t_status() checks that no status is marked as cancelled. A component of Open MPI
 * leaves that mark undefined in the statuses of probes. */
static bool looks_at_cancelled(void)
{
	const char *setting = getenv("TEST_CANCELLED");

	return !setting || strcmp(setting, "ignore");
}

void t_status(const MPI_Status *st, int src, int tag, size_t bytes)
{
	int count, cancelled;

	MPI_Get_count(st, MPI_BYTE, &count);
	MPI_Test_cancelled(st, &cancelled);
	if (!looks_at_cancelled())
		cancelled = false;
	if (st->MPI_SOURCE != src || st->MPI_TAG != tag || count != (int)bytes || cancelled)
		t_fail("a status has source %d, tag %d, %d bytes%s; not %d, %d, %zu",
		       st->MPI_SOURCE, st->MPI_TAG, count, cancelled ? ", cancelled" : "", src, tag,
		       bytes);
}

void *t_alloc(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		t_fail("no memory for %zu bytes", bytes);
	return p;
}

struct t_rng t_rng(uint64_t seed, uint64_t a, uint64_t b)
{
	return (struct t_rng){mix(mix(mix(seed + 1) + a) + b)};
}

uint64_t t_rand(struct t_rng *rng)
{
	rng->state += 0x9e3779b97f4a7c15u;
	return mix(rng->state);
}

int t_below(struct t_rng *rng, int n)
{
	return (int)((t_rand(rng) >> 33) % (uint64_t)n);
}

bool t_chance(struct t_rng *rng, int percent)
{
	return t_below(rng, 100) < percent;
}

void t_shuffle(struct t_rng *rng, int *v, int n)
{
	int i, j, x;

	for (i = n - 1; i > 0; i--) {
		j = t_below(rng, i + 1);
		x = v[i], v[i] = v[j], v[j] = x;
	}
}

long t_arg(int argc, char **argv, int index, long def)
{
	return index < argc ? strtol(argv[index], NULL, 0) : def;
}

/* Returns the handle of a counter. Open MPI counts from when the handle was made, so handles
 * stay. */
static MPI_T_pvar_handle counter_handle(const char *variable)
{
	static const int class[] = {MPI_T_PVAR_CLASS_COUNTER, MPI_T_PVAR_CLASS_LEVEL,
				    MPI_T_PVAR_CLASS_HIGHWATERMARK};
	MPI_T_pvar_handle handle;
	int index, count;

	for (size_t i = 0; i < sizeof(class) / sizeof(class[0]); i++)
		if (MPI_T_pvar_get_index(variable, class[i], &index) == MPI_SUCCESS &&
		    MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) == MPI_SUCCESS)
			return handle;
	return MPI_T_PVAR_HANDLE_NULL;
}

static bool exists(const char *variable)
{
	return counter_handle(variable) != MPI_T_PVAR_HANDLE_NULL;
}

/* Returns true if the component that a variable belongs to is in use. coll/tupleq is loaded with
 * any PML, but works with pml/tupleq alone. */
static bool is_in_use(const char *variable)
{
	bool of_coll = !strncmp(variable, "coll_", 5);

	return exists("pml_tupleq_puts") && (!of_coll || exists("coll_tupleq_nbc"));
}

long long t_resident(void)
{
	long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	t_true(f && fscanf(f, "%*d %lld", &pages) == 1, "/proc/self/statm can't be read");
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

long long t_counter(const char *variable)
{
	static struct {
		const char *name;
		MPI_T_pvar_handle handle;
	} known[8];
	unsigned long long value = 0;
	int provided, i;

	if (session == MPI_T_PVAR_SESSION_NULL) {
		MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
		MPI_T_pvar_session_create(&session);
	}
	for (i = 0; known[i].name && strcmp(known[i].name, variable) != 0; i++)
		t_true(i + 1 < 8, "more counters are asked for than there is room for");
	if (!known[i].name) {
		known[i].name = variable;
		known[i].handle =
			is_in_use(variable) ? counter_handle(variable) : MPI_T_PVAR_HANDLE_NULL;
		t_true(known[i].handle != MPI_T_PVAR_HANDLE_NULL || !is_in_use(variable),
		       "there is no variable %s", variable);
	}
	if (known[i].handle == MPI_T_PVAR_HANDLE_NULL ||
	    MPI_T_pvar_read(session, known[i].handle, &value) != MPI_SUCCESS)
		return -1;
	return (long long)value;
}

/* The rank behind the victim releases the others, and returns when each of them has received its
 * message or is gone. */
void t_survivors_meet(int victim)
{
	int first = (victim + 1) % t_size, word, rc;

	t_doing("meeting the other survivors");
	if (t_rank != first) {
		MPI_Send(&t_rank, 1, MPI_INT, first, 3, MPI_COMM_WORLD);
		rc = MPI_Recv(&word, 1, MPI_INT, first, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		t_true(rc == MPI_SUCCESS, "rank %d isn't let go: %d", t_rank, rc);
		return;
	}
	for (int i = (first + 1) % t_size; i != victim; i = (i + 1) % t_size) {
		rc = MPI_Recv(&word, 1, MPI_INT, i, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		t_true(rc == MPI_SUCCESS && word == i, "rank %d's word: %d", i, rc);
	}
	for (int i = (first + 1) % t_size; i != victim; i = (i + 1) % t_size)
		MPI_Ssend(&t_rank, 1, MPI_INT, i, 3, MPI_COMM_WORLD);
}

void t_library_function(const char *function, void *pointer)
{
	void *symbol = dlsym(RTLD_NEXT, function);

	t_true(symbol != NULL, "the library with %s isn't loaded", function);
	memcpy(pointer, &symbol, sizeof(symbol));
}

void t_away(long ms)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&left, &left) != 0)
		;
}

void t_threads(int n, void *(*body)(void *arg), void *args, size_t size)
{
	pthread_t *ids = t_alloc((size_t)n * sizeof(*ids));

	for (int i = 0; i < n; i++)
		t_true(!pthread_create(&ids[i], NULL, body, (char *)args + (size_t)i * size),
		       "pthread_create failed");
	for (int i = 0; i < n; i++)
		pthread_join(ids[i], NULL);
	free(ids);
}

static const char *counted; /* the variable that counts */
static long long counted_before;

void t_count(const char *variable)
{
	counted = variable;
	counted_before = t_counter(variable);
}

bool t_is_counting(void)
{
	return counted_before >= 0;
}

long long t_counted(void)
{
	return counted_before < 0 ? -1 : t_counter(counted) - counted_before;
}

bool t_enough(double since)
{
	int over = MPI_Wtime() - since > T_ENOUGH_S;

	MPI_Bcast(&over, 1, MPI_INT, 0, comm);
	alarm(deadline());
	return over;
}
