/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_time.c - messages of the connection manager take the time of the link, each the same. The
 * argument is that time in ns; the clock is virtual, and calls and computing take no time.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "cm.h"

static uint64_t trip; /* ns that a message takes */
static pid_t server;
static unsigned ports[2]; /* where the server listens, for connections and for datagrams */
static int ended[2];      /* a pipe whose end lets the server end */

/* Checks that the time since t0 is the time of that number of messages, one after the other. */
static void took(uint64_t t0, unsigned messages)
{
	t_eq(t_now() - t0, messages * trip);
}

/* ---- the server, on the other node ---- */

static struct rdma_cm_id *listen_on(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
	struct rdma_cm_id *id = new_id(channel, ps);

	t_ok(bind_to(id, "0.0.0.0", 0));
	t_ok(rdma_listen(id, 1));
	return id;
}

/* Accepts a connection, and agrees to its end. */
static void serve_connection(struct rdma_event_channel *channel)
{
	struct rdma_conn_param param = {.retry_count = 3};
	struct rdma_cm_id *id = expect_request(channel);
	uint64_t t0;

	make_qp(id);
	t0 = t_now();
	t_ok(rdma_accept(id, &param));
	expect_status(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	took(t0, 2); /* REP, RTU */
	expect_status(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	t_ok(rdma_disconnect(id));
	end_id(id);
}

static void serve_rejection(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = expect_request(channel);

	t_ok(rdma_reject(id, NULL, 0));
	end_id(id);
}

static void serve_datagrams(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = expect_request(channel);
	struct rdma_conn_param param = {.qp_num = 0};

	make_qp(id);
	t_ok(rdma_accept(id, &param));
	end_id(id);
}

static void be_server(int told)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *datagrams;
	char byte;

	t_child_begin();
	setenv("SOFTHCA_NODE", "1", 1);
	channel = rdma_create_event_channel();
	t_true(channel != NULL, "no channel: %s", strerror(errno));
	listener = listen_on(channel, RDMA_PS_TCP);
	datagrams = listen_on(channel, RDMA_PS_UDP);
	ports[0] = ntohs(rdma_get_src_port(listener));
	ports[1] = ntohs(rdma_get_src_port(datagrams));
	t_eq(write(told, ports, sizeof(ports)), sizeof(ports));
	serve_connection(channel);
	serve_rejection(channel);
	serve_datagrams(channel);
	close(ended[1]);
	t_eq(read(ended[0], &byte, 1), 0);
	end_id(listener);
	end_id(datagrams);
	rdma_destroy_event_channel(channel);
	exit(0);
}

/* The child is forked before this process uses librdmacm, which supports nothing else. */
static int begin(void **state)
{
	int told[2];

	(void)state;
	t_ok(pipe(told));
	t_ok(pipe(ended));
	server = fork();
	if (!server)
		be_server(told[1]);
	close(told[1]);
	t_eq(read(told[0], ports, sizeof(ports)), sizeof(ports));
	close(told[0]);
	return 0;
}

static int end(void **state)
{
	int status;

	(void)state;
	close(ended[1]);
	t_eq(waitpid(server, &status, 0), server);
	t_eq(status, 0);
	return 0;
}

/* ---- the client ---- */

static struct rdma_cm_id *new_client(struct rdma_event_channel *channel, enum rdma_port_space ps,
				     unsigned port)
{
	struct rdma_cm_id *id;

	t_true(channel != NULL, "no channel: %s", strerror(errno));
	id = new_id(channel, ps);
	resolve(id, NODE1, port);
	make_qp(id);
	return id;
}

static bool is_ethernet(struct rdma_cm_id *id)
{
	struct ibv_port_attr port;

	t_ok(ibv_query_port(id->verbs, 1, &port));
	return port.link_layer == IBV_LINK_LAYER_ETHERNET;
}

/* Checks that a question to a node, and its answer, take the time of that number of messages. On
 * Ethernet nobody is asked for a route. */
static void check_resolving(const char *ip, unsigned messages)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct sockaddr_in in = address(ip, 9);
	uint64_t t0 = t_now();

	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 2000));
	expect_status(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	took(t0, messages);
	t0 = t_now();
	t_ok(rdma_resolve_route(id, 2000));
	expect_status(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	took(t0, is_ethernet(id) ? 0 : messages);
	end_id(id);
	rdma_destroy_event_channel(channel);
}

static void test_resolving(void **state)
{
	(void)state;
	check_resolving(NODE1, 2);
	check_resolving(NODE0, 0);
}

/* Checks that a path from the program is there at once. */
static void test_own_path(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct ibv_path_data path = {.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
					      IBV_PATH_FLAG_BIDIRECTIONAL};
	struct sockaddr_in in = address(NODE1, 9);
	uint64_t t0;

	(void)state;
	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 2000));
	expect_status(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	t0 = t_now();
	t_ok(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)));
	expect_status(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	took(t0, 0);
	end_id(id);
	rdma_destroy_event_channel(channel);
}

static bool is_loopback(const struct sockaddr *address)
{
	return address->sa_family == AF_INET &&
	       ((const struct sockaddr_in *)address)->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

/* Checks that an answer that would come after the timeout counts for nothing: the next address is
 * reached from its own interface. */
static void test_resolving_too_late(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct sockaddr_in in = address(NODE1, 9), own = address("127.0.0.1", 9);
	uint64_t t0 = t_now();

	(void)state;
	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 0));
	expect_status(channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	took(t0, 0);
	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&own, 0));
	expect_status(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	t_true(is_loopback(rdma_get_local_addr(id)), "another source");
	end_id(id);
	rdma_destroy_event_channel(channel);
}

/* Checks that an answer about a route that would come after the timeout counts for nothing. The
 * kernel divides the timeout among its tries, each of which takes 1 ms at least. */
static void check_route(unsigned timeout_ms, unsigned waits_ms)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct sockaddr_in in = address(NODE1, 9);
	uint64_t t0, takes;

	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 2000));
	expect_status(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	takes = is_ethernet(id) ? 0 : 2 * trip;
	t0 = t_now();
	t_ok(rdma_resolve_route(id, (int)timeout_ms));
	if (takes > waits_ms * 1000000ull) {
		expect_status(channel, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
		t_eq(t_now() - t0, waits_ms * 1000000ull);
		t0 = t_now();
		t_ok(rdma_resolve_route(id, 2000));
	}
	expect_status(channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	t_eq(t_now() - t0, takes);
	end_id(id);
	rdma_destroy_event_channel(channel);
}

static void test_routing_too_late(void **state)
{
	(void)state;
	check_route(0, 1);
	check_route(1, 2);
	check_route(2, 3);
	check_route(19, 11);
	check_route(20, 22);
}

static void test_connection(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_client(channel, RDMA_PS_TCP, ports[0]);
	struct rdma_conn_param param = {.retry_count = 3};
	uint64_t t0 = t_now();

	(void)state;
	t_ok(rdma_connect(id, &param));
	took(t0, 0);
	expect_status(channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	took(t0, 2); /* REQ, REP */
	t0 = t_now();
	t_ok(rdma_disconnect(id));
	expect_status(channel, RDMA_CM_EVENT_DISCONNECTED, 0);
	/* The RTU leaves with the DREQ. */
	took(t0, 2); /* DREQ, DREP */
	end_id(id);
	rdma_destroy_event_channel(channel);
}

/* Asks, and checks that this event comes after a request and its answer. */
static void expect_answer(enum rdma_port_space ps, unsigned port, enum rdma_cm_event_type event,
			  int status)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_client(channel, ps, port);
	struct rdma_conn_param param = {.retry_count = 3};
	uint64_t t0 = t_now();

	t_ok(rdma_connect(id, &param));
	expect_status(channel, event, status);
	took(t0, 2);
	end_id(id);
	rdma_destroy_event_channel(channel);
}

static void test_rejection(void **state)
{
	(void)state;
	/* REQ, REJ by the consumer */
	expect_answer(RDMA_PS_TCP, ports[0], RDMA_CM_EVENT_REJECTED, 28);
}

static void test_datagrams(void **state)
{
	(void)state;
	/* SIDR_REQ, SIDR_REP */
	expect_answer(RDMA_PS_UDP, ports[1], RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void test_nobody_listens(void **state)
{
	(void)state;
	/* REQ, REJ by the kernel of the other node: invalid service ID */
	expect_answer(RDMA_PS_TCP, 9, RDMA_CM_EVENT_REJECTED, 8);
}

/* Checks that an event of the own node is seen before messages that are on their way. */
static void test_order(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_client(channel, RDMA_PS_TCP, 9), *other;
	struct rdma_conn_param param = {.retry_count = 3};
	struct sockaddr_in in = address(NODE0, 9);
	struct rdma_event_channel *second = rdma_create_event_channel();
	uint64_t t0 = t_now();

	(void)state;
	other = new_id(channel, RDMA_PS_TCP);
	t_ok(rdma_connect(id, &param));
	t_ok(rdma_resolve_addr(other, NULL, (struct sockaddr *)&in, 2000));
	t_true(is_readable(channel, 0), "the address isn't resolved");
	expect_status(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	t_true(!is_readable(channel, 0), "a message has come too early");
	t_ok(rdma_migrate_id(id, second));
	t_true(!is_readable(second, 0), "a message of another channel has come too early");
	expect_status(second, RDMA_CM_EVENT_REJECTED, 8);
	took(t0, 2);
	end_id(id);
	end_id(other);
	rdma_destroy_event_channel(second);
	rdma_destroy_event_channel(channel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connection),
		cmocka_unit_test(test_rejection),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_nobody_listens),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_resolving),
		cmocka_unit_test(test_own_path),
		cmocka_unit_test(test_resolving_too_late),
		cmocka_unit_test(test_routing_too_late),
	};

	if (argc != 2) {
		fprintf(stderr, "Usage: %s NANOSECONDS\n", argv[0]);
		return 2;
	}
	trip = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, begin, end);
}
