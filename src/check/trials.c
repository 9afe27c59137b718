/* SPDX-License-Identifier: BSD-3-Clause */
#include "trials.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "end.h"
#include "partner.h"

/* Bytes of a message, and of a buffer that is too short for one. */
#define MESSAGE 256u
#define SHORT   64u

/* How often the SRQ is made anew. */
#define RENEWALS 8

struct trials {
	const struct port *port;
	FILE *file; /* which names the XRC domain */
	struct end end;
	struct partner partner;
	unsigned seed; /* of the next message's pattern */
};

/* An ability that a test needs, and that not each adapter has. */
enum need { NEEDS_NOTHING, NEEDS_PIECES, NEEDS_ATOMICS };

struct trial {
	const char *name;
	bool (*run)(struct trials *trials);
	enum need need;
};

/* Asks the partner; its sentence becomes the end's. */
static bool ask(struct trials *trials, const struct partner_question *question)
{
	struct end *end = &trials->end;

	if (partner_ask(&trials->partner, question))
		return true;
	end_fail(end, 0, "%s", trials->partner.answer.why);
	end->error = trials->partner.answer.error;
	return false;
}

/* Sends `count` messages of `bytes` bytes with the patterns from `seed` on. */
static bool send_messages(struct trials *trials, unsigned count, uint32_t bytes)
{
	struct end *end = &trials->end;

	for (unsigned i = 0; i < count; i++) {
		const struct end_work work = {
			.opcode = IBV_WR_SEND,
			.slot = i,
			.len = bytes,
			.srqn = trials->partner.answer.srqn,
		};

		end_fill(end->out + i * END_SLOT, bytes, trials->seed + i);
		if (!end_post(end, &work))
			return false;
	}
	return true;
}

/* Has the partner post receives and take what comes, and waits for the sends. */
static bool take_messages(struct trials *trials, unsigned count, uint32_t len, uint32_t bytes)
{
	struct partner_question question = {
		.what = PARTNER_RECEIVE,
		.count = count,
		.len = len,
		.bytes = bytes,
		.value = trials->seed,
	};

	trials->seed += count;
	if (!ask(trials, &question))
		return false;
	question.what = PARTNER_TAKE;
	return ask(trials, &question) && end_wait_sent(&trials->end, count);
}

/* Starts the partner, which opens the domain's file, and the target QP of this process. */
static bool share(struct trials *trials)
{
	struct end *end = &trials->end;
	struct partner_question question = {.what = PARTNER_OPEN};

	if (!end_connect(end))
		return false;
	if (!partner_start(&trials->partner, trials->port, fileno(trials->file))) {
		end_fail(end, 0, "%s", trials->partner.answer.why);
		end->error = trials->partner.answer.error;
		return false;
	}
	question.value = end->target->qp_num;
	return ask(trials, &question);
}

/* A message that has no receive is held, and arrives when there is one. */
static bool trial_wait(struct trials *trials)
{
	return send_messages(trials, 1, MESSAGE) && end_is_waiting(&trials->end) &&
	       take_messages(trials, 1, END_SLOT, MESSAGE);
}

/* Messages come into the receives of a queue in the order in which they were sent. */
static bool trial_order(struct trials *trials)
{
	return send_messages(trials, END_SLOTS, MESSAGE) &&
	       take_messages(trials, END_SLOTS, END_SLOT, MESSAGE);
}

/* The end of a message that is too long goes elsewhere, and the completion has its length. */
static bool trial_truncation(struct trials *trials)
{
	return send_messages(trials, 1, END_SLOT) && take_messages(trials, 1, SHORT, END_SLOT);
}

/* A queue can go, and another one take messages by the same connection. */
static bool trial_renewal(struct trials *trials)
{
	const struct partner_question renew = {.what = PARTNER_RENEW};

	for (int i = 0; i < RENEWALS; i++)
		if (!ask(trials, &renew) || !send_messages(trials, 1, MESSAGE) ||
		    !take_messages(trials, 1, END_SLOT, MESSAGE))
			return false;
	return true;
}

/* Posts an operation on the partner's memory, and waits for its completion. */
static bool work_on(struct trials *trials, struct end_work work)
{
	work.srqn = trials->partner.answer.srqn;
	work.addr = trials->partner.answer.in;
	work.rkey = trials->partner.answer.rkey;
	return end_post(&trials->end, &work) && end_wait_sent(&trials->end, 1);
}

static bool trial_write(struct trials *trials)
{
	struct end *end = &trials->end;
	struct partner_question question = {
		.what = PARTNER_CHECK, .len = END_SLOT, .value = ++trials->seed};

	end_fill(end->out, END_SLOT, trials->seed);
	return work_on(trials, (struct end_work){.opcode = IBV_WR_RDMA_WRITE, .len = END_SLOT}) &&
	       ask(trials, &question);
}

static bool trial_read(struct trials *trials)
{
	struct end *end = &trials->end;
	struct partner_question question = {
		.what = PARTNER_FILL, .len = END_SLOT, .value = ++trials->seed};

	if (!ask(trials, &question) ||
	    !work_on(trials, (struct end_work){.opcode = IBV_WR_RDMA_READ, .len = END_SLOT}))
		return false;
	return end_has(end->out, END_SLOT, trials->seed) ||
	       end_fail(end, 0, "the data that were read are wrong");
}

/* Executes an atomic operation on the partner's word, whose value is `before`, and checks the
 * word's value afterwards. */
static bool atomic(struct trials *trials, struct end_work work, uint64_t before, uint64_t after)
{
	struct end *end = &trials->end;
	struct partner_question question = {.what = PARTNER_WORD, .value = before};
	uint64_t old;

	work.len = sizeof(old);
	if (!ask(trials, &question) || !work_on(trials, work))
		return false;
	memcpy(&old, end->out, sizeof(old));
	if (!ask(trials, &question))
		return false;
	if (trials->partner.answer.value != after)
		return end_fail(end, 0, "an atomic operation left a wrong value");
	return old == before || end_fail(end, 0, "an atomic operation returned a wrong value");
}

static bool trial_atomics(struct trials *trials)
{
	const uint64_t word = 0x0123456789abcdef, other = 0xfedcba9876543210;

	return atomic(trials,
		      (struct end_work){.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .compare = 3}, word,
		      word + 3) &&
	       atomic(trials,
		      (struct end_work){
			      .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .compare = word, .value = other},
		      word, other) &&
	       atomic(trials,
		      (struct end_work){.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
					.compare = other,
					.value = other},
		      word, word);
}

/* A message to a process that was killed ends, in error, and the next process takes messages. */
static bool trial_killed(struct trials *trials)
{
	struct end *end = &trials->end;
	struct ibv_wc wc;

	if (!send_messages(trials, 1, MESSAGE) || !end_is_waiting(end))
		return false;
	partner_end(&trials->partner, true);
	if (!end_poll(end, end->sent, &wc))
		return false;
	if (wc.status == IBV_WC_SUCCESS)
		return end_fail(end, 0, "a message to a killed process ended without an error");
	end_disconnect(end);
	return share(trials) && send_messages(trials, 1, MESSAGE) &&
	       take_messages(trials, 1, END_SLOT, MESSAGE);
}

static const struct trial trials_list[] = {
	{"an XRC domain and its target QP shared by two processes", share, NEEDS_NOTHING},
	{"a message waits for its receive", trial_wait, NEEDS_NOTHING},
	{"messages keep their order", trial_order, NEEDS_NOTHING},
	{"a message that is too long is cut", trial_truncation, NEEDS_PIECES},
	{"an SRQ made anew", trial_renewal, NEEDS_NOTHING},
	{"RDMA write", trial_write, NEEDS_NOTHING},
	{"RDMA read", trial_read, NEEDS_NOTHING},
	{"atomic operations", trial_atomics, NEEDS_ATOMICS},
	{"a killed process", trial_killed, NEEDS_NOTHING},
};
#define TRIALS (sizeof(trials_list) / sizeof(trials_list[0]))

/* Returns why the adapter can't do a test, or NULL. */
static const char *missing(const struct port *port, enum need need)
{
	if (need == NEEDS_PIECES && port->attr.max_srq_sge < 2)
		return "the receives of its SRQs have one piece";
	if (need == NEEDS_ATOMICS && port->attr.atomic_cap == IBV_ATOMIC_NONE)
		return "it has no atomic operations";
	return NULL;
}

void trials_report(struct report *report, const struct port *port)
{
	struct trials trials = {.port = port, .partner = {.socket = -1}, .file = tmpfile()};
	bool works = false;
	const char *why;

	if (trials.file)
		works = end_open(&trials.end, port, fileno(trials.file));
	else
		end_fail(&trials.end, errno, "tmpfile() for an XRC domain");
	if (!works)
		report_test(report, trials_list[0].name, trials.end.why,
			    port_advice(trials.end.error));
	for (size_t i = works ? 0 : 1; i < TRIALS; i++) {
		why = works ? missing(port, trials_list[i].need) : "an earlier test failed";
		if (why) {
			report_skipped(report, trials_list[i].name, why);
			continue;
		}
		works = trials_list[i].run(&trials);
		report_test(report, trials_list[i].name, works ? NULL : trials.end.why,
			    port_advice(trials.end.error));
	}
	partner_end(&trials.partner, !works);
	end_close(&trials.end);
	if (trials.file)
		fclose(trials.file);
}
