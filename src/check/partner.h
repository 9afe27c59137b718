/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * partner.h - the second process of the tests: tupleq-check, started anew, because libibverbs
 * doesn't survive a fork. The first process asks, and the partner does and answers.
 */
#ifndef TUPLEQ_CHECK_PARTNER_H
#define TUPLEQ_CHECK_PARTNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "port.h"

enum partner_do {
	PARTNER_OPEN,    /* open target QP `value` */
	PARTNER_RENEW,   /* make the SRQ anew */
	PARTNER_RECEIVE, /* post receives of `len` bytes into slots 0 to count - 1 */
	PARTNER_TAKE,    /* wait for the messages in these, and check their data and their order */
	PARTNER_FILL,    /* fill the first `len` bytes of `in` with pattern `value` */
	PARTNER_CHECK,   /* check that they have pattern `value` */
	PARTNER_CONNECT, /* make a connection of the partner's own */
	PARTNER_ECHO, /* send a message of `bytes` bytes to SRQ `value`, then `count` back there */
	PARTNER_WORD, /* set the first eight bytes of `in` to `value`, and answer the old ones */
};

struct partner_question {
	uint32_t what;  /* enum partner_do */
	uint32_t count; /* of slots, or of messages */
	uint32_t len;   /* of a receive */
	uint32_t bytes; /* of a message, of which a receive takes the first `len` */
	uint64_t value;
};

struct partner_answer {
	int32_t error; /* errno, or 0 */
	uint32_t ok;
	uint32_t srqn;
	uint32_t rkey;
	uint64_t in; /* address of the partner's slots */
	uint64_t value;
	char why[200];
};

struct partner {
	pid_t pid;       /* 0: it isn't running, or on another host */
	const char *who; /* "the second process" */
	int socket;
	struct partner_answer answer; /* the last one */
};

/* Starts the partner on the port, with the file of the XRC domain. Returns false if it can't be
 * started; answer.why says why. */
bool partner_start(struct partner *partner, const struct port *port, int xrc_file);

/* Asks, and waits for the answer. Returns false if the partner could not do it, or is gone. */
bool partner_ask(struct partner *partner, const struct partner_question *question);

/* The halves of partner_ask(). */
bool partner_tell(struct partner *partner, const struct partner_question *question);
bool partner_hear(struct partner *partner);

/* Ends the partner, by a signal if `kill`, and waits for its end. */
void partner_end(struct partner *partner, bool kill);

/* Answers the questions of the first process on the socket, until that ends or closes it. The first
 * answer says whether the end is ready. */
struct end;
void partner_serve(struct end *end, int socket, bool ready);

/* Runs the partner's side. Returns its exit status. */
int partner_main(const char *device, unsigned number);

#endif
