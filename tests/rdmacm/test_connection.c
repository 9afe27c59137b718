/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_connection.c - requests, connections and channels, with the errors, events and orders that
 * the kernel has.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm.h"

#define REQ_DATA 56 /* bytes of private data that a request to an IP address carries */
#define REJ_DATA 148

/* ---- requests ---- */

static void test_nobody_listens(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct rdma_cm_id *asker = new_id(channel, RDMA_PS_UDP);
	struct rdma_conn_param param = {.retry_count = 3};

	(void)state;
	resolve(id, NODE0, 9);
	make_qp(id);
	t_ok(rdma_connect(id, &param));
	expect_status(channel, RDMA_CM_EVENT_REJECTED, 8); /* invalid service ID */
	resolve(asker, NODE0, 9);
	make_qp(asker);
	t_ok(rdma_connect(asker, &param));
	expect_status(channel, RDMA_CM_EVENT_UNREACHABLE, 1); /* SIDR: not supported */
	end_id(id);
	end_id(asker);
	rdma_destroy_event_channel(channel);
}

static void test_reject(void **state)
{
	struct pair pair = begin_pair(1);
	struct rdma_conn_param param = {.private_data = "question", .private_data_len = 9};
	struct rdma_cm_event *event;

	(void)state;
	make_qp(pair.client);
	t_ok(rdma_connect(pair.client, &param));
	event = expect(pair.at_server, RDMA_CM_EVENT_CONNECT_REQUEST);
	/* All that the message carries is delivered. */
	t_eq(event->param.conn.private_data_len, REQ_DATA);
	t_str_eq(event->param.conn.private_data, "question");
	t_eq(event->param.conn.qp_num, pair.client->qp->qp_num);
	pair.server = event->id;
	t_true(event->listen_id == pair.listener, "another listener");
	t_ok(rdma_ack_cm_event(event));
	t_ok(rdma_reject(pair.server, "answer", 7));
	event = expect(pair.at_client, RDMA_CM_EVENT_REJECTED);
	t_eq(event->status, 28); /* by the consumer */
	t_eq(event->param.conn.private_data_len, REJ_DATA);
	t_str_eq(event->param.conn.private_data, "answer");
	t_ok(rdma_ack_cm_event(event));
	t_true(rdma_reject(pair.server, NULL, 0) == -1 && errno == EINVAL, "rejected twice");
	end_pair(&pair);
}

static void test_long_data(void **state)
{
	struct pair pair = begin_pair(1);
	char data[REQ_DATA + 1] = "";
	struct rdma_conn_param param = {.private_data = data, .private_data_len = sizeof(data)};

	(void)state;
	make_qp(pair.client);
	t_true(rdma_connect(pair.client, &param) == -1 && errno == EINVAL, "%s", strerror(errno));
	param.private_data_len = REQ_DATA;
	t_ok(rdma_connect(pair.client, &param));
	pair.server = expect_request(pair.at_server);
	end_pair(&pair);
}

/* The backlog counts requests that the program hasn't got. One more is dropped, and comes again. */
static void test_backlog(void **state)
{
	struct pair pair = begin_pair(1);
	struct rdma_cm_id *second = new_id(pair.at_client, RDMA_PS_TCP), *server;
	struct rdma_conn_param param = {.retry_count = 3};

	(void)state;
	resolve(second, NODE0, ntohs(rdma_get_src_port(pair.listener)));
	make_qp(pair.client);
	make_qp(second);
	t_ok(rdma_connect(pair.client, &param));
	t_ok(rdma_connect(second, &param));
	pair.server = expect_request(pair.at_server);
	t_true(!is_readable(pair.at_server, T_QUIET_MS), "the backlog is longer than 1");
	server = expect_request(pair.at_server);
	end_id(server);
	/* Rejected by that. */
	expect_status(pair.at_client, RDMA_CM_EVENT_REJECTED, 28);
	end_id(second);
	end_pair(&pair);
}

static void test_asker_gone(void **state)
{
	struct pair pair = begin_pair(1);
	struct rdma_conn_param param = {.retry_count = 3};

	(void)state;
	make_qp(pair.client);
	t_ok(rdma_connect(pair.client, &param));
	pair.server = expect_request(pair.at_server);
	end_id(pair.client);
	pair.client = NULL;
	make_qp(pair.server);
	t_true(rdma_accept(pair.server, &param) == -1 && errno == EINVAL, "%s", strerror(errno));
	end_pair(&pair);
}

static void test_listener_gone(void **state)
{
	struct pair pair = begin_pair(1);
	struct rdma_conn_param param = {.retry_count = 3};

	(void)state;
	make_qp(pair.client);
	t_ok(rdma_connect(pair.client, &param));
	end_id(pair.listener);
	pair.listener = NULL;
	expect_status(pair.at_client, RDMA_CM_EVENT_REJECTED, 28);
	t_true(!is_readable(pair.at_server, 0), "an event outlived its listener");
	end_pair(&pair);
}

/* ---- connections ---- */

static void test_attributes(void **state)
{
	struct pair pair = begin_pair(1);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	(void)state;
	establish(&pair);
	t_ok(ibv_query_qp(pair.server->qp, &attr, 0, &init));
	t_eq(attr.qp_state, IBV_QPS_RTS);
	t_eq(attr.min_rnr_timer, 0); /* 655 ms: nobody sets another one */
	t_eq(attr.dest_qp_num, pair.client->qp->qp_num);
	t_eq(attr.timeout, 19);
	t_eq(attr.retry_cnt, 3);
	t_ok(ibv_query_qp(pair.client->qp, &attr, 0, &init));
	t_eq(attr.qp_state, IBV_QPS_RTS);
	t_eq(attr.dest_qp_num, pair.server->qp->qp_num);
	end_pair(&pair);
}

static void test_disconnect(void **state)
{
	struct pair pair = begin_pair(1);

	(void)state;
	establish(&pair);
	t_ok(rdma_disconnect(pair.client));
	expect_status(pair.at_server, RDMA_CM_EVENT_DISCONNECTED, 0);
	/* The end that began it waits until the other one agrees. */
	t_true(!is_readable(pair.at_client, T_QUIET_MS), "nobody has agreed");
	t_ok(rdma_disconnect(pair.server));
	expect_status(pair.at_client, RDMA_CM_EVENT_DISCONNECTED, 0);
	expect_status(pair.at_client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	expect_status(pair.at_server, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	end_pair(&pair);
}

static void test_destroyed(void **state)
{
	struct pair pair = begin_pair(1);

	(void)state;
	establish(&pair);
	end_id(pair.server);
	pair.server = NULL;
	expect_status(pair.at_client, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_pair(&pair);
}

/* A request that names a QP which is connected already: its host has forgotten that connection, so
 * the connection is ended, too. */
static void test_stale(void **state)
{
	struct pair pair = begin_pair(1);
	struct rdma_cm_id *again = new_id(pair.at_client, RDMA_PS_TCP);
	struct rdma_conn_param param = {.retry_count = 3};

	(void)state;
	establish(&pair);
	resolve(again, NODE0, ntohs(rdma_get_src_port(pair.listener)));
	param.qp_num = pair.client->qp->qp_num;
	t_ok(rdma_connect(again, &param));
	expect_status(pair.at_client, RDMA_CM_EVENT_REJECTED, 10); /* stale connection */
	expect_status(pair.at_client, RDMA_CM_EVENT_DISCONNECTED, 0);
	t_true(!is_readable(pair.at_server, 0), "the listener has heard of it");
	t_ok(rdma_disconnect(pair.client));
	expect_status(pair.at_server, RDMA_CM_EVENT_DISCONNECTED, 0);
	end_id(again);
	expect_status(pair.at_client, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	expect_status(pair.at_server, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	/* Now the QP is unknown. */
	again = new_id(pair.at_client, RDMA_PS_TCP);
	resolve(again, NODE0, ntohs(rdma_get_src_port(pair.listener)));
	t_ok(rdma_connect(again, &param));
	end_id(expect_request(pair.at_server));
	end_id(again);
	end_pair(&pair);
}

/* An answer that names a connected QP is rejected in the same way. */
static void test_stale_answer(void **state)
{
	struct pair pair = begin_pair(1);
	struct rdma_cm_id *again = new_id(pair.at_client, RDMA_PS_TCP), *server;
	struct rdma_conn_param param = {.retry_count = 3};

	(void)state;
	establish(&pair);
	resolve(again, NODE0, ntohs(rdma_get_src_port(pair.listener)));
	make_qp(again);
	t_ok(rdma_connect(again, &param));
	server = expect_request(pair.at_server);
	param.qp_num = pair.server->qp->qp_num;
	t_ok(rdma_accept(server, &param));
	expect_status(pair.at_server, RDMA_CM_EVENT_REJECTED, 10);
	expect_status(pair.at_server, RDMA_CM_EVENT_DISCONNECTED, 0);
	t_true(!is_readable(pair.at_client, 0), "the asking end has heard of it");
	end_id(server);
	end_id(again);
	end_pair(&pair);
}

/* ---- channels ---- */

static void test_channel(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;

	(void)state;
	t_ok(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK));
	t_true(!is_readable(channel, 0), "readable without an event");
	t_true(rdma_get_cm_event(channel, &event) == -1 && errno == EAGAIN, "%s", strerror(errno));
	rdma_destroy_event_channel(channel);
}

/* Commands and questions of later kernels. <rdma/rdma_user_cm.h> can't be included beside
 * librdmacm's header. */
static void test_unknown(void **state)
{
	enum { QUERY = 19, LATER_COMMAND = 23, LATER_QUESTION = 3, IDENTIFIERS = 65536 };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	char answer[512];
	struct {
		uint32_t command;
		uint16_t in, out;
		uint64_t response;
		uint32_t id, question;
	} command = {LATER_COMMAND, 16, sizeof(answer), (uintptr_t)answer, 0, LATER_QUESTION};

	(void)state;
	t_true(write(channel->fd, &command, sizeof(command)) == -1 && errno == EINVAL, "%s",
	       strerror(errno));
	command.command = QUERY;
	/* librdmacm keeps the number of an identifier to itself. */
	errno = ENOENT;
	while (errno == ENOENT && command.id++ < IDENTIFIERS)
		t_eq(write(channel->fd, &command, sizeof(command)), -1);
	t_eq(errno, ENOSYS);
	end_id(id);
	rdma_destroy_event_channel(channel);
}

static void test_migrate(void **state)
{
	struct rdma_event_channel *from = rdma_create_event_channel(),
				  *to = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(from, RDMA_PS_TCP), *other = new_id(from, RDMA_PS_TCP);
	struct sockaddr_in in = address(NODE1, 1);

	(void)state;
	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 100));
	t_ok(rdma_resolve_addr(other, NULL, (struct sockaddr *)&in, 100));
	t_ok(rdma_migrate_id(id, to));
	expect_status(to, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	expect_status(from, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	t_true(!is_readable(from, 0) && !is_readable(to, 0), "an event too many");
	end_id(id);
	end_id(other);
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(to);
}

/* ---- processes ---- */

/* Connects from the other node, says so, and waits to be killed. */
static void be_client(unsigned port, int said)
{
	struct rdma_event_channel *channel;
	struct rdma_conn_param param = {.retry_count = 3};
	struct rdma_cm_id *id;

	t_child_begin();
	t_untidy();
	setenv("SOFTHCA_NODE", "1", 1);
	channel = rdma_create_event_channel();
	t_true(channel != NULL, "no channel: %s", strerror(errno));
	id = new_id(channel, RDMA_PS_TCP);
	resolve(id, NODE0, port);
	make_qp(id);
	t_ok(rdma_connect(id, &param));
	expect_status(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	t_eq(write(said, "", 1), 1);
	pause();
}

/* The child is forked before this process uses librdmacm, which supports nothing else. */
static void test_killed_peer(void **state)
{
	struct rdma_conn_param param = {.retry_count = 3};
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	int asked[2], said[2], status;
	unsigned port;
	pid_t child;
	char byte;

	(void)state;
	t_ok(pipe(asked));
	t_ok(pipe(said));
	child = fork();
	if (!child) {
		t_eq(read(asked[0], &port, sizeof(port)), sizeof(port));
		be_client(port, said[1]);
	}
	channel = rdma_create_event_channel();
	t_true(channel != NULL, "no channel: %s", strerror(errno));
	listener = new_id(channel, RDMA_PS_TCP);
	t_ok(rdma_listen(listener, 1));
	port = ntohs(rdma_get_src_port(listener));
	t_eq(write(asked[1], &port, sizeof(port)), sizeof(port));
	id = expect_request(channel);
	t_str_eq(inet_ntoa(((struct sockaddr_in *)rdma_get_peer_addr(id))->sin_addr), NODE1);
	make_qp(id);
	t_ok(rdma_accept(id, &param));
	expect_status(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	t_eq(read(said[0], &byte, 1), 1);
	t_ok(kill(child, SIGKILL));
	expect_status(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	t_eq(waitpid(child, &status, 0), child);
	end_id(id);
	end_id(listener);
	rdma_destroy_event_channel(channel);
}

/* A child must not take its parent's events. */
static void test_inherited(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct sockaddr_in in = address(NODE1, 1);
	struct rdma_cm_event *event;
	int status;
	pid_t child;

	(void)state;
	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 100));
	child = fork();
	if (!child) {
		t_child_begin();
		t_true(rdma_get_cm_event(channel, &event) == -1 && errno == EPERM, "%s",
		       strerror(errno));
		close(channel->fd);
		_exit(0);
	}
	t_eq(waitpid(child, &status, 0), child);
	t_eq(status, 0);
	expect_status(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	end_id(id);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_peer),   cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_reject),        cmocka_unit_test(test_long_data),
		cmocka_unit_test(test_backlog),       cmocka_unit_test(test_asker_gone),
		cmocka_unit_test(test_listener_gone), cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_disconnect),    cmocka_unit_test(test_destroyed),
		cmocka_unit_test(test_channel),       cmocka_unit_test(test_migrate),
		cmocka_unit_test(test_inherited),     cmocka_unit_test(test_stale),
		cmocka_unit_test(test_stale_answer),  cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
