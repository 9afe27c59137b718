/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "partner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end.h"

/* The partner's files. */
enum { SOCKET = 3, XRC_FILE = 4 };

/* How long an answer may take: more than a deadline of the partner itself. */
static const struct timeval answer_time = {.tv_sec = 20};

extern char **environ;

/* ---- the first process ---- */

/* Leaves a sentence, with the error that is its cause, and returns false. */
static __attribute__((format(printf, 3, 4))) bool fail(struct partner *partner, int error,
						       const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(partner->answer.why, sizeof(partner->answer.why), format, args);
	va_end(args);
	partner->answer.error = error;
	return false;
}

/* Reads an answer. */
bool partner_hear(struct partner *partner)
{
	ssize_t n;

	do
		n = recv(partner->socket, &partner->answer, sizeof(partner->answer), MSG_WAITALL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return fail(partner, 0, "%s doesn't answer (%s)", partner->who, strerror(errno));
	if (n != sizeof(partner->answer))
		return fail(partner, 0, "%s has ended", partner->who);
	partner->answer.why[sizeof(partner->answer.why) - 1] = '\0';
	return partner->answer.ok;
}

/* Starts the program again, with these files. */
static int spawn(struct partner *partner, const struct port *port, int socket, int xrc_file)
{
	posix_spawn_file_actions_t files;
	char option[100];
	char *argv[] = {(char *)"tupleq-check", option, NULL};
	int error;

	snprintf(option, sizeof(option), "--partner=%s:%u", port->device, port->number);
	error = posix_spawn_file_actions_init(&files);
	if (error)
		return error;
	error = posix_spawn_file_actions_adddup2(&files, socket, SOCKET);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&files, xrc_file, XRC_FILE);
	if (!error)
		error = posix_spawn(&partner->pid, "/proc/self/exe", &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return error;
}

bool partner_start(struct partner *partner, const struct port *port, int xrc_file)
{
	int ends[2], error, high[2];

	*partner = (struct partner){.who = "the second process", .socket = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return fail(partner, errno, "no socket can be made (%s)", strerror(errno));
	/* An answer may only be late, so that this is no reason to give up. */
	setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &answer_time, sizeof(answer_time));
	/* Above the numbers that the partner gets them by, so that neither is overwritten. */
	high[0] = fcntl(ends[1], F_DUPFD_CLOEXEC, XRC_FILE + 1);
	high[1] = fcntl(xrc_file, F_DUPFD_CLOEXEC, XRC_FILE + 1);
	error = high[0] < 0 || high[1] < 0 ? errno : spawn(partner, port, high[0], high[1]);
	if (high[0] >= 0)
		close(high[0]);
	if (high[1] >= 0)
		close(high[1]);
	close(ends[1]);
	partner->socket = ends[0];
	if (error) {
		partner->pid = 0;
		fail(partner, error, "a second process can't be started (%s)", strerror(error));
	} else if (partner_hear(partner)) {
		return true;
	}
	partner_end(partner, true);
	return false;
}

bool partner_tell(struct partner *partner, const struct partner_question *question)
{
	return send(partner->socket, question, sizeof(*question), MSG_NOSIGNAL) ==
		       sizeof(*question) ||
	       fail(partner, 0, "%s has ended", partner->who);
}

bool partner_ask(struct partner *partner, const struct partner_question *question)
{
	return partner_tell(partner, question) && partner_hear(partner);
}

void partner_end(struct partner *partner, bool kill_it)
{
	if (partner->pid > 0) {
		if (kill_it)
			kill(partner->pid, SIGKILL);
		else
			shutdown(partner->socket, SHUT_RDWR);
		while (waitpid(partner->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (partner->socket >= 0)
		close(partner->socket);
	partner->pid = 0;
	partner->socket = -1;
}

/* ---- the partner ---- */

static bool receive(struct end *end, const struct partner_question *question)
{
	memset(end->in, 0, END_SLOTS * END_SLOT);
	for (unsigned i = 0; i < question->count; i++)
		if (!end_receive(end, i, question->len, question->len < END_SLOT))
			return false;
	return true;
}

/* Checks message i, which should have pattern `value` + i. */
static bool check_message(struct end *end, const struct partner_question *question,
			  const struct ibv_wc *wc, unsigned i)
{
	const uint8_t *slot = end->in + i * END_SLOT;
	uint32_t len = question->len < question->bytes ? question->len : question->bytes;

	if (wc->status != IBV_WC_SUCCESS)
		return end_fail(end, 0, "a receive failed: %s (vendor error 0x%x)",
				ibv_wc_status_str(wc->status), wc->vendor_err);
	if (wc->wr_id != i)
		return end_fail(end, 0, "message %u came into receive %u", i, (unsigned)wc->wr_id);
	if (wc->byte_len != question->bytes)
		return end_fail(end, 0, "message %u has %u bytes instead of %u", i, wc->byte_len,
				question->bytes);
	if (!end_has(slot, len, (unsigned)question->value + i))
		return end_fail(end, 0, "message %u has wrong data", i);
	for (uint32_t at = len; at < END_SLOT; at++)
		if (slot[at])
			return end_fail(end, 0, "message %u was written behind its buffer", i);
	return true;
}

static bool take(struct end *end, const struct partner_question *question)
{
	struct ibv_wc wc;

	for (unsigned i = 0; i < question->count; i++)
		if (!end_poll(end, end->received, &wc) || !check_message(end, question, &wc, i))
			return false;
	return true;
}

/*
 * Sends a message, then messages back as they come. The first process sends the next one when it
 * has the last. So the receive for that one is posted before: else the message would be held.
 */
static bool echo(struct end *end, const struct partner_question *question)
{
	const struct end_work work = {
		.opcode = IBV_WR_SEND, .len = question->bytes, .srqn = (uint32_t)question->value};

	for (unsigned i = 0; i <= question->count; i++) {
		if (i < question->count && !end_receive(end, 0, question->bytes, false))
			return false;
		if (!end_post(end, &work) || !end_wait_sent(end, 1))
			return false;
		if (i == question->count)
			break;
		if (!end_wait_received(end))
			return false;
	}
	return true;
}

static bool answer(struct end *end, const struct partner_question *question,
		   struct partner_answer *answer)
{
	switch (question->what) {
	case PARTNER_OPEN:
		return end_open_target(end, (uint32_t)question->value);
	case PARTNER_RENEW:
		return end_make_srq(end);
	case PARTNER_RECEIVE:
		return receive(end, question);
	case PARTNER_TAKE:
		return take(end, question);
	case PARTNER_FILL:
		end_fill(end->in, question->len, (unsigned)question->value);
		return true;
	case PARTNER_CHECK:
		return end_has(end->in, question->len, (unsigned)question->value) ||
		       end_fail(end, 0, "the data that were written are wrong");
	case PARTNER_CONNECT:
		return end_connect(end);
	case PARTNER_ECHO:
		return echo(end, question);
	case PARTNER_WORD:
		memcpy(&answer->value, end->in, sizeof(answer->value));
		memcpy(end->in, &question->value, sizeof(question->value));
		return true;
	default:
		return end_fail(end, 0, "the second process was asked for something unknown");
	}
}

/* Sends an answer. Returns false if nobody listens. */
static bool reply(const struct end *end, int socket, struct partner_answer *said, bool ok)
{
	said->ok = ok;
	said->error = ok ? 0 : end->error;
	said->srqn = end->srqn;
	said->rkey = end->memory ? end->memory->rkey : 0;
	said->in = (uintptr_t)end->in;
	memcpy(said->why, end->why, sizeof(said->why));
	return send(socket, said, sizeof(*said), MSG_NOSIGNAL) == sizeof(*said);
}

static struct ibv_context *open_device(const char *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs = NULL;

	for (int i = 0; list && list[i] && !verbs; i++)
		if (!strcmp(device, ibv_get_device_name(list[i])))
			verbs = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return verbs;
}

void partner_serve(struct end *end, int socket, bool ready)
{
	struct partner_question question;
	struct partner_answer said = {0};

	if (!reply(end, socket, &said, ready) || !ready)
		return;
	while (recv(socket, &question, sizeof(question), MSG_WAITALL) == sizeof(question)) {
		memset(&said, 0, sizeof(said));
		if (!reply(end, socket, &said, answer(end, &question, &said)))
			return;
	}
}

int partner_main(const char *device, unsigned number)
{
	struct end end = {0};
	struct port port;
	struct ibv_context *verbs;
	bool ok;
	int error, type;

	if (getsockopt(SOCKET, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){sizeof(type)})) {
		fputs("tupleq-check: --partner is for tupleq-check itself.\n", stderr);
		return 2;
	}
	verbs = open_device(device);
	if (!verbs) {
		end_fail(&end, errno, "ibv_open_device() by a second process");
		partner_serve(&end, SOCKET, false);
		return EXIT_FAILURE;
	}
	error = port_query(&port, verbs, number);
	if (error) {
		end_fail(&end, error, "ibv_query_port() by a second process");
		partner_serve(&end, SOCKET, false);
		ibv_close_device(verbs);
		return EXIT_FAILURE;
	}
	ok = end_open(&end, &port, XRC_FILE);
	partner_serve(&end, SOCKET, ok);
	end_close(&end);
	ibv_close_device(verbs);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
