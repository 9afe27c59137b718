/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends messages to and fro with libtupleq. Two processes connect by TCP and exchange the addresses
 * of their endpoints. All messages after that go through the adapters.
 *
 * pingpong PORT          the server: waits for the client
 * pingpong PORT HOST     the client: connects to the server on that host
 *
 * A receive that is posted before its message comes lies in a queue of the adapter, which puts the
 * message into the receive's buffer. So each side posts its next receive before it sends the
 * message that the other side answers.
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

/* The message by which each process introduces its endpoint to the other, over TCP. */
struct hello {
	uint64_t key; /* the job's key, which the server chooses */
	uint32_t len;
	unsigned char address[ADDRESS_ROOM];
};

/* A send or a receive of one number. complete() marks its end. */
struct operation {
	int ended, error;
	int value;
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

/* Returns a socket that is connected to the other process. Without a host, waits for the client. */
static int meet(const char *port, const char *host)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE};
	struct addrinfo *found;
	int one = 1, fd, other;

	hints.ai_family = AF_INET;
	must(!getaddrinfo(host, port, &hints, &found), "that host or port is not known");
	fd = socket(found->ai_family, found->ai_socktype, 0);
	must(fd >= 0, "the system has no socket left");
	if (host) {
		must(!connect(fd, found->ai_addr, found->ai_addrlen), "nobody answers there");
		freeaddrinfo(found);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(!bind(fd, found->ai_addr, found->ai_addrlen) && !listen(fd, 1), "that port is in use");
	freeaddrinfo(found);
	other = accept(fd, NULL, NULL);
	must(other >= 0, "no connection came");
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
	must(hello->len <= sizeof(hello->address), "the other process is not pingpong");
}

/* Opens the endpoint of this process. `dir` is for the file that stands for the XRC domain. */
static struct tq_ep *open_endpoint(uint64_t key, const char *dir, const char *name)
{
	struct tq_params *params = tq_params_new();
	struct tq_job job = {
		.key = key, .dir = dir, .name = name, .log = print_log, .complete = complete};
	struct tq_ep *ep;
	char why[256];

	must(params != NULL, "there is no memory left");
	/* Already the first message requests a tuple queue. */
	must(!tq_param_set(params, "promote_after", "0", why, sizeof(why)), why);
	must(!tq_open(params, &job, NULL, &ep), "the endpoint could not be opened");
	tq_params_free(params);
	return ep;
}

/* Starts the receive of a number. finish() waits for it. */
static void start_receive(struct tq_ctx *ctx, int from, struct operation *op)
{
	struct tq_buf buf = {.addr = &op->value, .len = sizeof(op->value)};
	struct tq_status status = {0};
	struct tq_req *req;
	int rc;

	op->ended = op->error = 0;
	rc = tq_recv(ctx, from, TAG, &buf, op, &req, &status);
	must(rc >= 0, "a receive could not be started");
	if (rc == 1) /* the message was already there */
		complete(op, &status);
}

/* Starts the send of a number. finish() waits for it. */
static void start_send(struct tq_ctx *ctx, int to, int value, struct operation *op)
{
	struct tq_buf buf = {.addr = &op->value, .len = sizeof(op->value)};
	struct tq_req *req;
	int rc;

	*op = (struct operation){.value = value};
	rc = tq_send(ctx, to, TAG, &buf, 0, op, &req);
	must(rc >= 0, "a send could not be started");
	if (rc == 1) /* the number was copied, so the send has already ended */
		op->ended = 1;
}

static void finish(struct tq_ep *ep, const struct operation *op)
{
	while (!op->ended)
		tq_progress(ep);
	must(!op->error, "a message failed");
}

/* Sends numbers to the other process, which sends them back. Returns the seconds that this took. */
static double play(struct tq_ep *ep, struct tq_ctx *ctx, int rank)
{
	struct operation in[2], out; /* two receives: the next is posted while one is read */
	struct timespec start, end;

	clock_gettime(CLOCK_MONOTONIC, &start);
	start_receive(ctx, !rank, &in[0]);
	for (int i = 0; i < ROUNDS; i++) {
		if (rank == 0) {
			start_send(ctx, 1, i, &out);
			finish(ep, &out);
		}
		finish(ep, &in[i % 2]);
		must(in[i % 2].value == i, "the number that came is not the number that was sent");
		if (i + 1 < ROUNDS)
			start_receive(ctx, !rank, &in[(i + 1) % 2]);
		if (rank == 1) {
			start_send(ctx, 0, i, &out);
			finish(ep, &out);
		}
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
	must(mkdtemp(dir) != NULL, "no directory could be made in /tmp");

	if (rank == 0) {
		must(getrandom(&mine.key, sizeof(mine.key), 0) == sizeof(mine.key),
		     "the system has no random numbers");
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

	must(!tq_peer_add(ep, mine.address, mine.len, "itself", &peers[rank]),
	     "a peer could not be added");
	must(!tq_peer_add(ep, other.address, other.len, "the other process", &peers[!rank]),
	     "a peer could not be added");
	must(!tq_ctx_add(ep, CONTEXT, peers, 2, rank, 0, &ctx), "the context could not be made");
	seconds = play(ep, ctx, rank);
	printf("%d rounds, %.2f us a message\n", ROUNDS, 1e6 * seconds / (2 * ROUNDS));
	print_counter(ep, "recv_direct");

	/* Neither process closes its endpoint while the other still waits for a message. */
	tq_flush(ep);
	must(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1, "the other process has ended");
	tq_ctx_remove(ctx);
	tq_close(ep);
	rmdir(dir);
	close(fd);
	return 0;
}
