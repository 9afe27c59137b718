/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to and fro with libtupleq. Two processes find each other by TCP, which takes their
 * addresses across; then the adapters do the rest.
 *
 * pingpong PORT          waits for the other one
 * pingpong PORT HOST     connects to it
 */
#define _GNU_SOURCE 1
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <tupleq/tupleq.h>
#include <unistd.h>

enum { CONTEXT = 7, TAG = 42, ROUNDS = 1000, ADDRESS_ROOM = 1024 };

/* What the processes tell each other by TCP. */
struct hello {
	uint64_t key; /* of the job: the server chooses it */
	uint32_t len;
	unsigned char address[ADDRESS_ROOM];
};

/* An operation; complete() marks its end. */
struct operation {
	int ended, error;
};

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "pingpong: %s\n", what);
	exit(1);
}

static void print_log(void *arg, enum tq_log_level level, const char *text)
{
	(void)arg;
	if (level <= TQ_LOG_WARN)
		fprintf(stderr, "pingpong: %s\n", text);
}

static void complete(void *user, const struct tq_status *status)
{
	struct operation *op = user;

	op->error = status->error;
	op->ended = 1;
}

/* Returns a socket that leads to the other process. */
static int meet(const char *port, const char *host)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE};
	struct addrinfo *found;
	int one = 1, fd, other;

	hints.ai_family = AF_INET;
	must(!getaddrinfo(host, port, &hints, &found), "that host or port is not known");
	fd = socket(found->ai_family, found->ai_socktype, 0);
	must(fd >= 0, "no socket");
	if (host) {
		must(!connect(fd, found->ai_addr, found->ai_addrlen), "nobody answers there");
		freeaddrinfo(found);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(!bind(fd, found->ai_addr, found->ai_addrlen) && !listen(fd, 1), "that port is in use");
	freeaddrinfo(found);
	other = accept(fd, NULL, NULL);
	must(other >= 0, "nobody came");
	close(fd);
	return other;
}

static void write_hello(int fd, const struct hello *hello)
{
	must(write(fd, hello, sizeof(*hello)) == sizeof(*hello), "the other process has ended");
}

static void read_hello(int fd, struct hello *hello)
{
	must(recv(fd, hello, sizeof(*hello), MSG_WAITALL) == sizeof(*hello),
	     "the other process has ended");
	must(hello->len <= sizeof(hello->address), "the other process is no pingpong");
}

/* Opens this process's endpoint. `dir` holds the file of the job's XRC domain on this host. */
static struct tq_ep *open_endpoint(uint64_t key, const char *dir, const char *name)
{
	struct tq_params *params = tq_params_new();
	struct tq_job job = {
		.key = key, .dir = dir, .name = name, .log = print_log, .complete = complete};
	struct tq_ep *ep;
	char why[256];

	must(params != NULL, "no memory");
	/* Asks for a tuple queue at once, rather than after some messages. */
	must(!tq_param_set(params, "promote_after", "0", why, sizeof(why)), why);
	must(!tq_open(params, &job, NULL, &ep), "no endpoint");
	tq_params_free(params);
	return ep;
}

/* Ends an operation: `started` is what tq_send() or tq_recv() returned for it. */
static void finish(struct tq_ep *ep, struct operation *op, int started)
{
	must(started >= 0, "a message could not be started");
	while (!started && !op->ended)
		tq_progress(ep);
	must(!op->error, "a message failed");
}

static void send_message(struct tq_ep *ep, struct tq_ctx *ctx, int to, int *value)
{
	struct tq_buf buf = {.addr = value, .len = sizeof(*value)};
	struct operation op = {0};
	struct tq_req *req;

	finish(ep, &op, tq_send(ctx, to, TAG, &buf, 0, &op, &req));
}

static void recv_message(struct tq_ep *ep, struct tq_ctx *ctx, int from, int *value)
{
	struct tq_buf buf = {.addr = value, .len = sizeof(*value)};
	struct operation op = {0};
	struct tq_status status = {0};
	struct tq_req *req;

	finish(ep, &op, tq_recv(ctx, from, TAG, &buf, &op, &req, &status));
	must(!status.error, "a message failed");
}

/* Sends numbers there, which come back. Returns the seconds that it took. */
static double play(struct tq_ep *ep, struct tq_ctx *ctx, int rank)
{
	struct timespec start, end;
	int value = 0;

	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < ROUNDS; i++) {
		value = rank == 0 ? i : -1;
		if (rank == 0)
			send_message(ep, ctx, 1, &value);
		recv_message(ep, ctx, !rank, &value);
		must(value == i, "another number came than was sent");
		if (rank == 1)
			send_message(ep, ctx, 0, &value);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
}

static void print_counter(const struct tq_ep *ep, const char *name)
{
	const struct tq_counter_desc *desc;

	for (unsigned i = 0; (desc = tq_counter_desc(i)); i++)
		if (!strcmp(desc->name, name))
			printf("%llu %s\n", (unsigned long long)tq_counter(ep, i), desc->help);
}

int main(int argc, char **argv)
{
	int rank = argc > 2, fd;
	struct hello mine = {0}, other;
	char dir[] = "/tmp/pingpong-XXXXXX", byte = 0;
	struct tq_peer *peers[2];
	struct tq_ctx *ctx;
	struct tq_ep *ep;
	const void *address;
	double seconds;
	size_t len;

	must(argc == 2 || argc == 3, "usage: pingpong PORT [HOST]");
	fd = meet(argv[1], rank ? argv[2] : NULL);
	must(mkdtemp(dir) != NULL, "no directory in /tmp");

	if (rank == 0) {
		must(getrandom(&mine.key, sizeof(mine.key), 0) == sizeof(mine.key), "no key");
	} else {
		read_hello(fd, &other);
		mine.key = other.key;
	}
	ep = open_endpoint(mine.key, dir, rank ? "the client" : "the server");
	printf("%s\n", tq_device_text(ep));
	address = tq_address(ep, &len);
	must(len <= sizeof(mine.address), "the address is too long");
	memcpy(mine.address, address, len);
	mine.len = (uint32_t)len;
	write_hello(fd, &mine);
	if (rank == 0)
		read_hello(fd, &other);

	must(!tq_peer_add(ep, mine.address, mine.len, "itself", &peers[rank]), "no peer");
	must(!tq_peer_add(ep, other.address, other.len, "the other process", &peers[!rank]),
	     "no peer");
	must(!tq_ctx_add(ep, CONTEXT, peers, 2, rank, 0, &ctx), "no context");
	seconds = play(ep, ctx, rank);
	printf("%d rounds, %.2f us a message\n", ROUNDS, 1e6 * seconds / (2 * ROUNDS));
	print_counter(ep, "recv_direct");

	/* Nobody closes while the other one still needs an answer. */
	tq_flush(ep);
	must(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1, "the other process has ended");
	tq_ctx_remove(ctx);
	tq_close(ep);
	rmdir(dir);
	close(fd);
	return 0;
}
