/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of the protocol that ep/ and net/ call, as listed below, assert that the core's
 * lock is held. In builds that check this (--enable-debug, sanitizers), a call without the lock
 * ends the process; in others the call works. With the lock each call works.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/core.h"
#include "proto/ctxs.h"
#include "proto/msg.h"
#include "proto/peers.h"
#include "proto/probe.h"
#include "proto/recv.h"
#include "proto/req.h"
#include "proto/rx_tuple_table.h"
#include "proto/send.h"
#include "unit.h"

#define TAG 7

static struct tq_lock lock;
static struct tq_peer other;

/* ---- the calls ---- */

static char data[8];
static const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
static struct tq_status status;
static struct tq_req *req;
static struct tq_msg *msg;

static void call_poll(void)
{
	tq_core_poll(&unit.core);
}

static void call_is_idle(void)
{
	tq_core_is_idle(&unit.core);
}

static void call_ended(void)
{
	tq_core_ended(&unit.core);
}

static void call_ended_unfailed(void)
{
	tq_core_ended_unfailed(&unit.core);
}

static void call_peer_init(void)
{
	if (tq_core_peer_init(&unit.core, &other, NULL, NULL))
		_exit(1);
}

static void call_peer_fini(void)
{
	tq_core_peer_fini(&unit.core, &unit.peer);
}

static void call_peer_is_idle(void)
{
	tq_core_peer_is_idle(&unit.peer);
}

static void call_ctx_add(void)
{
	struct tq_peer *const peers[] = {&unit.peer};
	struct tq_ctx *added;

	tq_core_ctx_add(&unit.core, 6, peers, 1, 0, 0, &added);
}

static void call_ctx_set_flags(void)
{
	tq_core_ctx_set_flags(unit.ctx, TQ_CTX_NO_ANY_TAG);
}

static void call_ctx_remove(void)
{
	tq_core_ctx_remove(unit.ctx);
}

static void call_send(void)
{
	tq_core_send(unit.ctx, 0, TAG, &buf, 0, NULL, &req);
}

static void call_pays_to_wait(void)
{
	tq_core_pays_to_wait(unit.ctx, 0, TAG, sizeof(data));
}

static void call_give_back_crowded(void)
{
	tq_core_give_back_crowded(unit.ctx, 0, TAG);
}

static void call_recv_should_poll(void)
{
	tq_core_recv_should_poll(unit.ctx, 0, TAG);
}

static void call_recv(void)
{
	tq_core_recv(unit.ctx, 0, TAG, &buf, NULL, &req, &status);
}

static void call_cancel(void)
{
	tq_core_cancel(req);
}

static void call_end_receives(void)
{
	tq_core_end_receives(&unit.core, UNIT_CTX, TAG, -EIO);
}

static void call_probe(void)
{
	tq_core_probe(unit.ctx, 0, TAG, &status);
}

static void call_mprobe(void)
{
	tq_core_mprobe(unit.ctx, 0, TAG, &status, &msg);
}

static void call_tuple_infos(void)
{
	struct tq_tuple_info info;

	tq_core_tuple_infos(&unit.core, &info, 1);
}

static void call_on_control(void)
{
	struct tq_msg_answer fin = {.hdr = tq_msg_hdr(TQ_MSG_FIN, 0)};

	tq_core_on_control(&unit.core, &unit.peer, &fin, sizeof(fin), NULL);
}

static void call_on_lane_ready(void)
{
	tq_core_on_lane_ready(&unit.core, &unit.peer);
}

static void call_take_awaited(void)
{
	tq_core_take_awaited(&unit.peer);
}

static void call_awaits_answer(void)
{
	tq_core_awaits_answer(&unit.peer);
}

static void call_on_peer_failed(void)
{
	tq_core_on_peer_failed(&unit.core, &unit.peer);
}

static void call_on_srqs_gone(void)
{
	tq_core_on_srqs_gone(&unit.core);
}

static void call_on_broken(void)
{
	tq_core_on_broken(&unit.core);
}

#define ENTRY(name)                            \
	{                                      \
		"tq_core_" #name, call_##name, \
	}
static const struct {
	const char *name;
	void (*call)(void);
} entries[] = {
	ENTRY(poll),
	ENTRY(is_idle),
	ENTRY(ended),
	ENTRY(ended_unfailed),
	ENTRY(peer_init),
	ENTRY(peer_fini),
	ENTRY(peer_is_idle),
	ENTRY(ctx_add),
	ENTRY(ctx_set_flags),
	ENTRY(ctx_remove),
	ENTRY(send),
	ENTRY(pays_to_wait),
	ENTRY(give_back_crowded),
	ENTRY(recv_should_poll),
	ENTRY(recv),
	ENTRY(cancel),
	ENTRY(end_receives),
	ENTRY(probe),
	ENTRY(mprobe),
	ENTRY(tuple_infos),
	ENTRY(on_control),
	ENTRY(on_lane_ready),
	ENTRY(take_awaited),
	ENTRY(awaits_answer),
	ENTRY(on_peer_failed),
	ENTRY(on_srqs_gone),
	ENTRY(on_broken),
};

/* ---- the child processes ---- */

#ifdef TQ_LOCK_CHECKS
#define WITHOUT SIGABRT
#else
#define WITHOUT 0
#endif

/* Makes the call in a child, which has an endpoint and a receive of its own. */
static void child(void (*call)(void), bool held)
{
	/* The expected message of assert() would only confuse. */
	if (!freopen("/dev/null", "w", stderr))
		_exit(1);
	unit_start(NULL, NULL);
	if (unit_recv(0, TAG, &req))
		_exit(1);
	unit.core.lock = &lock;
	if (held)
		tq_lock(&lock);
	call();
	_exit(0);
}

/* Returns the signal that ends the child, 0 if the child succeeds, or a negative number. */
static int ends_by(void (*call)(void), bool held)
{
	int how = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0)
		child(call, held);
	if (pid < 0 || waitpid(pid, &how, 0) != pid)
		return -1;
	return WIFSIGNALED(how) ? WTERMSIG(how) : -WEXITSTATUS(how);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		unit_check("with the lock", entries[i].name, ends_by(entries[i].call, true) == 0);
		unit_check("without the lock", entries[i].name,
			   ends_by(entries[i].call, false) == WITHOUT);
	}
	return unit_status();
}
