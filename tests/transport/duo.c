/* SPDX-License-Identifier: BSD-3-Clause */
#include "duo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "on_device.h"
#include "within.h"

#define PARAMS_MAX 16
#define WHY_ROOM   256

static const char *params[PARAMS_MAX];
static int nparams, failed;
static char *why;    /* shared: the reason of the process that failed first */
static char dir[32]; /* the job's directory */

int duo_param(const char *assignment)
{
	if (nparams < PARAMS_MAX)
		params[nparams++] = assignment;
	return nparams;
}

void duo_params_keep(int n)
{
	nparams = n;
}

int duo_failed(void)
{
	return failed;
}

void duo_result(const char *name, const char *text)
{
	failed += text != NULL;
	printf("%sok %s%s%s\n", text ? "not " : "", name, text ? " - " : "", text ? text : "");
	fflush(stdout);
}

void t_fail_at(const char *file, int line, const char *fmt, ...)
{
	char text[WHY_ROOM];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n >= 0 && n < (int)sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, " (%s:%d)", file, line);
	if (!why[0])
		strcpy(why, text);
	_exit(1);
}

/* ---- the endpoint ---- */

static void log_text(void *arg, enum tq_log_level level, const char *text)
{
	struct duo *duo = arg;

	if (level == TQ_LOG_ERROR) {
		if (!duo->errors)
			snprintf(duo->error, sizeof(duo->error), "%s", text);
		duo->errors++;
	}
	if (level <= TQ_LOG_WARN)
		fprintf(stderr, "# %d: %s\n", duo->me, text);
}

static void complete(void *user, const struct tq_status *status)
{
	struct duo_op *op = user;

	t_true(!op->ended, "a request ended twice");
	op->ended = true;
	op->status = *status;
}

static struct tq_params *make_params(void)
{
	struct tq_params *made = tq_params_new();
	const char *intranode = getenv("TEST_INTRANODE");
	char name[64], text[256];

	on_device_set(made);
	if (intranode)
		within_set(made, intranode);
	for (int i = 0; i < nparams; i++) {
		const char *value = strchr(params[i], '=');

		t_true(value, "%s: NAME=VALUE is needed", params[i]);
		snprintf(name, sizeof(name), "%.*s", (int)(value - params[i]), params[i]);
		t_true(!tq_param_set(made, name, value + 1, text, sizeof(text)), "%s: %s",
		       params[i], text);
	}
	return made;
}

static void exchange(struct duo *duo)
{
	unsigned char mine[1024], other[1024];
	size_t len;
	const void *address = tq_address(duo->ep, &len);
	ssize_t n;
	int rc;

	t_true(len <= sizeof(mine), "an address of %zu bytes", len);
	memcpy(mine, address, len);
	t_true(send(duo->socket, mine, len, 0) == (ssize_t)len, "send: %s", strerror(errno));
	n = recv(duo->socket, other, sizeof(other), 0);
	t_true(n > 0, "the other process has ended");
	rc = tq_peer_add(duo->ep, mine, len, "itself", &duo->peers[duo->me]);
	t_true(!rc, "peer_add: %d", rc);
	rc = tq_peer_add(duo->ep, other, (size_t)n, "the other", &duo->peers[!duo->me]);
	t_true(!rc, "peer_add: %d", rc);
}

static void open_endpoint(struct duo *duo, uint64_t key)
{
	struct tq_params *made = make_params();
	struct tq_job job = {
		.key = key,
		.dir = dir,
		.name = duo->me ? "process 1" : "process 0",
		.log = log_text,
		.log_arg = duo,
		.complete = complete,
	};
	int rc;

	rc = tq_open(made, &job, NULL, &duo->ep);
	t_true(!rc, "open: %d", rc);
	tq_params_free(made);
}

static void run(struct duo *duo, duo_fn *fn)
{
	int rc;

	open_endpoint(duo, (uint64_t)getppid());
	exchange(duo);
	rc = tq_ctx_add(duo->ep, DUO_CTX, duo->peers, 2, duo->me, 0, &duo->ctx);
	t_true(!rc, "ctx_add: %d", rc);
	fn(duo);
	tq_flush(duo->ep);
	duo_meet(duo);
	duo_close(duo);
}

/* Removes the directory, with the files that a dead process has left there. */
static void remove_dir(void)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	while (d && (entry = readdir(d)))
		unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

/* Returns the reason why a process that ended like this has failed, or NULL if it has not. */
static const char *complaint(int status, bool killed)
{
	if (killed)
		return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? NULL
									  : "it was not killed";
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGALRM ? "no end in time" : strsignal(WTERMSIG(status));
	return status ? "it failed" : NULL;
}

/* Opens and closes an endpoint, which removes the job's file if a process that was killed has left
 * it. Returns true if that leaves the directory empty, and removes the directory. */
static bool reopen(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct duo d = {.me = 0};

		open_endpoint(&d, 0);
		tq_close(d.ep);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return !status && !rmdir(dir);
}

static void run_both(const char *name, duo_fn *fn, bool killed)
{
	int sockets[2], status, bad = 0;
	pid_t pids[2];

	strcpy(dir, "/tmp/tupleq-test-XXXXXX");
	if (!why)
		why = mmap(NULL, WHY_ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			   0);
	if (why == MAP_FAILED || !mkdtemp(dir) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets)) {
		perror("set-up");
		exit(1);
	}
	why[0] = '\0';
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			struct duo d = {.me = i, .socket = sockets[i]};

			close(sockets[!i]);
			setenv("SOFTHCA_NODE", i && !getenv("TEST_INTRANODE") ? "1" : "0", 1);
			/* So that runs in virtual time repeat: process slots would differ. */
			setenv("PMI_RANK", i ? "1" : "0", 1);
			alarm(DUO_DEADLINE);
			run(&d, fn);
		}
	}
	close(sockets[0]);
	close(sockets[1]);
	for (int i = 0; i < 2; i++) {
		const char *text;

		waitpid(pids[i], &status, 0);
		text = complaint(status, killed && i == 1);
		if (!text)
			continue;
		bad = 1;
		if (!why[0])
			snprintf(why, WHY_ROOM, "process %d: %s", i, text);
	}
	if (killed && !bad && !reopen()) {
		bad = 1;
		snprintf(why, WHY_ROOM, "a file of the job is left");
	}
	duo_result(name, bad ? why : NULL);
	remove_dir();
}

void duo_run(const char *name, duo_fn *fn)
{
	run_both(name, fn, false);
}

void duo_run_killed(const char *name, duo_fn *fn)
{
	run_both(name, fn, true);
}

/* ---- operations ---- */

unsigned char duo_byte(size_t at, unsigned seed)
{
	return (unsigned char)(seed * 37 + at * 11 + (at >> 8));
}

void duo_fill(unsigned char *data, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		data[i] = duo_byte(i, seed);
}

static void started(struct duo_op *op, int rc)
{
	t_true(rc == 0 || rc == 1, "an operation was refused: %d", rc);
	if (rc == 1)
		op->ended = true;
}

void duo_send(struct duo *duo, int rank, int32_t tag, const void *data, size_t len, unsigned flags,
	      struct duo_op *op)
{
	struct tq_buf buf = {.addr = (void *)(uintptr_t)data, .len = len};

	*op = (struct duo_op){0};
	started(op, tq_send(duo->ctx, rank, tag, &buf, flags, op, &op->req));
}

void duo_recv(struct duo *duo, int rank, int32_t tag, void *data, size_t len, struct duo_op *op)
{
	struct tq_buf buf = {.addr = data, .len = len};

	*op = (struct duo_op){0};
	started(op, tq_recv(duo->ctx, rank, tag, &buf, op, &op->req, &op->status));
}

void duo_wait(struct duo *duo, struct duo_op *op)
{
	while (!op->ended)
		tq_progress(duo->ep);
}

void duo_swap_memory(struct duo *duo, const void *mem, const struct tq_mr *mr, uint64_t *addr,
		     uint32_t *key)
{
	struct memory {
		uint64_t addr;
		uint32_t key;
	} mine = {(uintptr_t)mem, tq_mr_key(mr)}, other;
	struct duo_op sent, received;

	duo_recv(duo, !duo->me, 1, &other, sizeof(other), &received);
	duo_send(duo, !duo->me, 1, &mine, sizeof(mine), 0, &sent);
	duo_wait(duo, &received);
	duo_wait(duo, &sent);
	*addr = other.addr;
	*key = other.key;
}

void duo_meet(struct duo *duo)
{
	struct pollfd fd = {.fd = duo->socket, .events = POLLIN};
	char c = 'm';

	t_true(send(duo->socket, &c, 1, MSG_NOSIGNAL) == 1, "the other process has ended");
	while (poll(&fd, 1, 0) == 0)
		tq_progress(duo->ep);
	t_true(recv(duo->socket, &c, 1, 0) == 1, "the other process has ended");
}

void duo_pass(struct duo *duo, int32_t tag, void *data, size_t len, unsigned flags)
{
	struct duo_op op;

	if (duo->me)
		duo_recv(duo, 0, tag, data, len, &op);
	duo_meet(duo);
	if (!duo->me)
		duo_send(duo, 1, tag, data, len, flags, &op);
	duo_wait(duo, &op);
}

void duo_gone(struct duo *duo)
{
	struct pollfd fd = {.fd = duo->socket, .events = POLLIN};
	char c;

	while (poll(&fd, 1, 0) == 0)
		tq_progress(duo->ep);
	t_true(recv(duo->socket, &c, 1, 0) <= 0, "the other process is still there");
}

uint64_t duo_counter(struct duo *duo, const char *name)
{
	const struct tq_counter_desc *desc;

	for (unsigned i = 0; (desc = tq_counter_desc(i)); i++) {
		if (!strcmp(desc->name, name))
			return tq_counter(duo->ep, i);
	}
	t_fail("there is no counter %s", name);
}

void duo_end(void)
{
	_exit(0);
}

void duo_close(struct duo *duo)
{
	tq_ctx_remove(duo->ctx);
	tq_close(duo->ep);
	_exit(0);
}
