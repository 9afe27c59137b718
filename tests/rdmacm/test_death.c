/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_death.c - a process dies before each step of a connection, or at any moment of one. The
 * other end gets the event that the kernel of the dead one causes, and nothing is left over.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../random.h"
#include "../softhca/stat.h"
#include "cm.h"

static const int steps[2] = {9, 10}; /* of the client and of the server */

#define MOMENTS 40    /* deaths at any moment */
#define SPREAD  20000 /* us: they come in this time */

/* The side that dies, and the step before which it does. */
static struct {
	bool is_server;
	int step; /* negative: the parent kills it */
} victim;
static int step;

static void reach(bool is_server)
{
	if (is_server == victim.is_server && step++ == victim.step)
		raise(SIGKILL);
}

/* Waits for an event, or until the parent says that the peer is dead and there is none. */
static struct rdma_cm_event *next_event(struct rdma_event_channel *channel, int peer_died,
					bool is_due)
{
	struct pollfd fds[2] = {{.fd = channel->fd, .events = POLLIN},
				{.fd = peer_died, .events = POLLIN}};
	struct rdma_cm_event *event;

	/* An event that is due comes although the peer is dead. */
	t_true(poll(fds, is_due ? 1 : 2, T_DEADLINE_MS) > 0, "no event comes");
	if (!(fds[0].revents & POLLIN) && !is_readable(channel, 0))
		return NULL;
	t_ok(rdma_get_cm_event(channel, &event));
	return event;
}

/* Waits for the end of a connection, which the peer's end or its death causes. */
static void await_end(struct rdma_cm_id *id, struct rdma_event_channel *channel, int peer_died,
		      bool is_server)
{
	bool is_over = false;

	while (!is_over) {
		struct rdma_cm_event *event = next_event(channel, peer_died, true);

		switch (event->event) {
		case RDMA_CM_EVENT_ESTABLISHED:
			reach(is_server);
			if (!is_server)
				t_ok(rdma_disconnect(id));
			break;
		case RDMA_CM_EVENT_REJECTED:
		case RDMA_CM_EVENT_UNREACHABLE:
		case RDMA_CM_EVENT_CONNECT_ERROR:
		case RDMA_CM_EVENT_DISCONNECTED:
			is_over = true;
			break;
		default:
			t_true(false, "%s", rdma_event_str(event->event));
		}
		t_ok(rdma_ack_cm_event(event));
	}
	reach(is_server);
	/* As librdmacm's programs do; there may be nothing to agree to. */
	rdma_disconnect(id);
	reach(is_server);
	end_id(id);
}

static void be_server(int said, int peer_died)
{
	struct rdma_conn_param param = {.retry_count = 3};
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	struct rdma_cm_event *event;
	uint16_t port;

	reach(true);
	channel = rdma_create_event_channel();
	t_true(channel != NULL, "no channel: %s", strerror(errno));
	reach(true);
	listener = new_id(channel, RDMA_PS_TCP);
	t_ok(rdma_listen(listener, 1));
	reach(true);
	port = ntohs(rdma_get_src_port(listener));
	t_true(write(said, &port, sizeof(port)) == sizeof(port) || errno == EPIPE, "%s",
	       strerror(errno));
	reach(true);
	event = next_event(channel, peer_died, false);
	if (event) {
		t_eq(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
		id = event->id;
		t_ok(rdma_ack_cm_event(event));
		reach(true);
		make_qp(id);
		reach(true);
		if (rdma_accept(id, &param)) {
			t_eq(errno, EINVAL); /* the request was taken back */
			end_id(id);
		} else {
			reach(true);
			await_end(id, channel, peer_died, true);
		}
	}
	end_id(listener);
	rdma_destroy_event_channel(channel);
}

static void be_client(int heard, int peer_died)
{
	struct rdma_conn_param param = {.retry_count = 3};
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	uint16_t port;

	setenv("SOFTHCA_NODE", "1", 1);
	reach(false);
	channel = rdma_create_event_channel();
	t_true(channel != NULL, "no channel: %s", strerror(errno));
	reach(false);
	id = new_id(channel, RDMA_PS_TCP);
	reach(false);
	/* A server that died before it listened says nothing. */
	if (read(heard, &port, sizeof(port)) == sizeof(port)) {
		resolve(id, NODE0, port);
		reach(false);
		make_qp(id);
		reach(false);
		t_ok(rdma_connect(id, &param));
		reach(false);
		await_end(id, channel, peer_died, false);
	} else {
		end_id(id);
	}
	rdma_destroy_event_channel(channel);
}

/* A side's process, and the pipe that tells it that the other one has died. */
struct side {
	pid_t pid;
	int died[2];
};

static void begin_side(struct side *side, bool is_server, int port[2])
{
	side->pid = fork();
	if (side->pid)
		return;
	t_child_begin();
	t_untidy();
	signal(SIGPIPE, SIG_IGN);
	step = 0;
	close(port[!is_server]);
	close(side->died[1]);
	if (is_server)
		be_server(port[1], side->died[0]);
	else
		be_client(port[0], side->died[0]);
	_exit(0);
}

static void await_no_cells(void)
{
	uint64_t begin = t_now();
	json_int_t left;

	do {
		json_t *doc = stat_json(), *cells = json_object_get(doc, "connection_cells"), *used;
		const char *kind;

		left = 0;
		json_object_foreach(cells, kind, used) left += json_integer_value(used);
		json_decref(doc);
		t_true(t_ms_since(begin) < T_DEADLINE_MS, "%d cells are left", (int)left);
	} while (left);
}

/* Runs a connection whose victim dies before a step, or after `us`. */
static void run(bool is_server, int at, unsigned us)
{
	struct side sides[2] = {{.pid = 0}};
	int port[2], status;
	pid_t killed;

	victim.is_server = is_server;
	victim.step = at;
	t_ok(pipe2(port, O_CLOEXEC));
	for (int i = 0; i < 2; i++)
		t_ok(pipe2(sides[i].died, O_CLOEXEC));
	for (int i = 0; i < 2; i++)
		begin_side(&sides[i], i == 1, port);
	close(port[0]);
	close(port[1]);
	killed = sides[is_server].pid;
	if (at < 0) {
		usleep(us);
		kill(killed, SIGKILL);
	}
	t_eq(waitpid(killed, &status, 0), killed);
	t_true(WIFSIGNALED(status) || !status, "the victim's status is %x", (unsigned)status);
	t_true(at < 0 || WIFSIGNALED(status), "there is no step %d", at);
	close(sides[!is_server].died[1]);
	t_eq(waitpid(sides[!is_server].pid, &status, 0), sides[!is_server].pid);
	t_true(!status, "the other end's status is %x", (unsigned)status);
	close(sides[is_server].died[1]);
	for (int i = 0; i < 2; i++)
		close(sides[i].died[0]);
}

static void test_each_step(void **state)
{
	(void)state;
	for (int is_server = 0; is_server < 2; is_server++)
		for (int at = 0; at < steps[is_server]; at++)
			run(is_server, at, 0);
	await_no_cells();
}

static void test_any_moment(void **state)
{
	uint64_t seed = (uint64_t)getpid();

	(void)state;
	print_message("the seed is %llu\n", (unsigned long long)seed);
	for (int i = 0; i < MOMENTS; i++)
		run(i % 2, -1, (unsigned)(t_random(&seed) % SPREAD));
	await_no_cells();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_step),
		cmocka_unit_test(test_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
