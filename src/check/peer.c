/* SPDX-License-Identifier: BSD-3-Clause */
/* The end that asks. */
#include "peer.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"
#include "trips.h"

#define SAMPLES   201u
#define BUDGET_US 200e3

static const char start_it[] = "start tupleq-check --serve there, and let its TCP port through "
			       "the firewall";
static const char no_route[] = "check the cables, the switches and the subnet manager, or for RoCE "
			       "that both ports are in one network";

/* Connects to the peer. Returns the socket, or -1 with the reason. */
static int reach(const char *host, const char *port, const char **why)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list, *at;
	int error = getaddrinfo(host, port, &hints, &list), socket_fd = -1;

	if (error) {
		*why = error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error);
		return -1;
	}
	for (at = list; at && socket_fd < 0; at = at->ai_next) {
		socket_fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
		if (socket_fd < 0) {
			*why = strerror(errno);
			continue;
		}
		peer_limit(socket_fd);
		if (connect(socket_fd, at->ai_addr, at->ai_addrlen)) {
			*why = strerror(errno == EINPROGRESS ? ETIMEDOUT : errno);
			close(socket_fd);
			socket_fd = -1;
		}
	}
	freeaddrinfo(list);
	return socket_fd;
}

static bool ask(struct end *end, struct partner *partner, struct partner_question question)
{
	return partner_ask(partner, &question) || end_fail(end, 0, "%s", partner->answer.why);
}

/* A message arrives with its data. */
static bool message(struct end *end, struct partner *partner)
{
	struct end_work work = {.opcode = IBV_WR_SEND, .len = END_SLOT};
	struct partner_question question = {.what = PARTNER_RECEIVE,
					    .count = 1,
					    .len = END_SLOT,
					    .bytes = END_SLOT,
					    .value = 1};

	if (!ask(end, partner, question))
		return false;
	work.srqn = partner->answer.srqn;
	end_fill(end->out, END_SLOT, 1);
	if (!end_post(end, &work) || !end_wait_sent(end, 1))
		return false;
	question.what = PARTNER_TAKE;
	return ask(end, partner, question);
}

/* Writes END_SLOTS times, and waits for all. Returns the time of one, or 0 after an error. */
static double write_all(struct end *end, const struct partner *partner, uint32_t bytes)
{
	const struct end_work work = {
		.opcode = IBV_WR_RDMA_WRITE,
		.len = bytes,
		.srqn = partner->answer.srqn,
		.addr = partner->answer.in,
		.rkey = partner->answer.rkey,
	};
	double begin = measure_now();

	for (unsigned i = 0; i < END_SLOTS; i++)
		if (!end_post(end, &work))
			return 0;
	return end_wait_sent(end, END_SLOTS) ? (measure_now() - begin) / END_SLOTS : 0;
}

static bool written(struct end *end, struct partner *partner)
{
	end_fill(end->out, END_SLOT, 2);
	return write_all(end, partner, END_SLOT) > 0 &&
	       ask(end, partner,
		   (struct partner_question){.what = PARTNER_CHECK, .len = END_SLOT, .value = 2});
}

static bool measure_writes(struct report *report, struct end *end, const struct partner *partner,
			   uint32_t bytes, bool works)
{
	static double samples[SAMPLES];
	double begin = measure_now();
	unsigned n;

	for (n = 0; works && n < SAMPLES && (!n || measure_now() - begin < BUDGET_US); n++) {
		samples[n] = write_all(end, partner, bytes);
		works = samples[n] > 0;
	}
	if (works)
		report_price(report, "a write of a stream", bytes, samples, n);
	else
		report_no_price(report, "a write of a stream", bytes, end->why);
	return works;
}

/* Runs the tests. A peer that has ended is another fault than one that adapters don't reach. */
static enum peer_status test(struct report *report, struct end *end, struct partner *partner)
{
	static const struct {
		const char *name;
		bool (*run)(struct end *end, struct partner *partner);
	} tests[] = {{"message to the peer", message}, {"RDMA write to the peer", written}};

	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		char byte;
		bool gone;

		if (tests[i].run(end, partner)) {
			report_test(report, tests[i].name, NULL, NULL);
			continue;
		}
		gone = recv(partner->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
		report_test(report, tests[i].name, end->why,
			    gone ? "see what ended tupleq-check --serve there" : no_route);
		return gone ? PEER_GONE : PEER_NO_ROUTE;
	}
	return PEER_WORKS;
}

/* Tests and measures, when both ends are connected. */
static enum peer_status work(struct report *report, struct end *end, struct partner *partner)
{
	enum peer_status status = test(report, end, partner);
	bool works = status == PEER_WORKS;

	report_verdict(report);
	if (!works)
		return status;
	report_prices(report);
	works = trips_measure(report, end, partner, works);
	works = measure_writes(report, end, partner, 8, works);
	works = measure_writes(report, end, partner, END_SLOTS * END_SLOT, works);
	if (!works)
		fprintf(stderr, "tupleq-check: The peer went away in the middle: %s.\n", end->why);
	return works ? PEER_WORKS : PEER_GONE;
}

static enum peer_status refuse(struct report *report, enum peer_status status, const char *host,
			       const char *why, const char *advice)
{
	report_fact(report, REPORT_BAD, "peer", host, why, advice);
	report_verdict(report);
	return status;
}

/* Exchanges addresses, and connects. */
static enum peer_status join(struct report *report, struct end *end, struct partner *partner,
			     const char *host, const struct peer_address *ours)
{
	struct peer_address theirs;
	char found[2 * REPORT_TEXT], why[REPORT_TEXT];

	if (!peer_send(partner->socket, ours, sizeof(*ours)) ||
	    !peer_receive(partner->socket, &theirs, sizeof(theirs)))
		return refuse(report, PEER_GONE, host, "the peer has ended", start_it);
	theirs.device[sizeof(theirs.device) - 1] = theirs.why[sizeof(theirs.why) - 1] = '\0';
	if (!ours->ok)
		return refuse(report, PEER_NO_PORT, host, ours->why,
			      "see what tupleq-check says without --peer");
	if (!theirs.ok) {
		snprintf(why, sizeof(why), "no port works there (%s)", theirs.why);
		return refuse(report, PEER_NO_ROUTE, host, why, "see what tupleq-check says there");
	}
	snprintf(found, sizeof(found), "%s, %s port %u", host, theirs.device, theirs.number);
	if (!peer_connect(end, &theirs))
		return refuse(report, PEER_NO_ROUTE, found, end->why, no_route);
	if (!partner_hear(partner))
		return refuse(report, PEER_NO_ROUTE, found, partner->answer.why, no_route);
	report_fact(report, REPORT_OK, "peer", found, NULL, NULL);
	return work(report, end, partner);
}

enum peer_status peer_check(struct report *report, const struct port *port, const char *peer)
{
	struct partner partner = {.who = "the peer", .socket = -1};
	char host[256], tcp_port[32], version[24], why[REPORT_TEXT];
	const char *reason = "no address";
	enum peer_status status;
	struct peer_address ours;
	struct end end = {0};
	FILE *file;

	report_port(report, port->device, port->number);
	peer_split(peer, host, tcp_port);
	partner.socket = reach(host, tcp_port, &reason);
	if (partner.socket < 0) {
		snprintf(why, sizeof(why), "TCP port %s there can't be reached (%s)", tcp_port,
			 reason);
		return refuse(report, PEER_ABSENT, host, why, start_it);
	}
	status = peer_greet(partner.socket, version);
	if (status == PEER_VERSION) {
		snprintf(why, sizeof(why), "tupleq-check there has version %s, and here %s",
			 version, PACKAGE_VERSION);
		refuse(report, status, host, why, "install the same version on both hosts");
	} else if (status == PEER_ABSENT) {
		snprintf(why, sizeof(why), "TCP port %s there isn't tupleq-check's", tcp_port);
		refuse(report, status, host, why, start_it);
	} else {
		file = tmpfile();
		peer_open(&end, port, file ? fileno(file) : -1, &ours);
		status = join(report, &end, &partner, host, &ours);
		end_close(&end);
		if (file)
			fclose(file);
	}
	close(partner.socket);
	return status;
}
