/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_address.c - addresses and ports of identifiers, and calls in the wrong order.
 */
#include "cm.h"

static void test_address_in_use(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *a = new_id(channel, RDMA_PS_TCP), *b = new_id(channel, RDMA_PS_TCP);
	struct rdma_cm_id *c = new_id(channel, RDMA_PS_UDP);
	unsigned port;

	(void)state;
	t_ok(bind_to(a, NODE0, 0));
	port = ntohs(rdma_get_src_port(a));
	t_true(port != 0, "no port was chosen");
	t_true(a->verbs != NULL, "an interface's address gives no device");
	t_eq(bind_to(b, NODE0, port), EADDRINUSE);
	/* Linux says this where one of the two addresses is the wildcard. */
	t_eq(bind_to(b, "0.0.0.0", port), EADDRNOTAVAIL);
	t_ok(bind_to(c, NODE0, port)); /* another port space */
	end_id(a);
	t_ok(bind_to(b, NODE0, port));
	end_id(b);
	end_id(c);
	rdma_destroy_event_channel(channel);
}

static void test_shared_port(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *a = new_id(channel, RDMA_PS_TCP), *b = new_id(channel, RDMA_PS_TCP);
	int yes = 1;

	(void)state;
	t_ok(rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
	t_ok(rdma_set_option(b, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
	t_ok(bind_to(a, NODE0, 0));
	t_ok(bind_to(b, NODE0, ntohs(rdma_get_src_port(a))));
	/* One that listens shares its port with nobody. */
	t_true(rdma_listen(a, 1) == -1 && errno == EADDRINUSE, "listens: %s", strerror(errno));
	end_id(b);
	t_ok(rdma_listen(a, 1));
	end_id(a);
	rdma_destroy_event_channel(channel);
}

static void test_wrong_address(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct sockaddr_in nobody = address("10.77.9.9", 1), outside = address("198.51.100.1", 1);

	(void)state;
	t_eq(bind_to(id, NODE1, 0), EADDRNOTAVAIL); /* the other node's */
	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&nobody, 20));
	expect_status(channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&outside, 20));
	expect_status(channel, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	end_id(id);
	rdma_destroy_event_channel(channel);
}

static void test_wildcard(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);

	(void)state;
	t_ok(bind_to(id, "127.0.0.1", 0));
	t_true(id->verbs == NULL, "the loopback address gives a device");
	end_id(id);
	id = new_id(channel, RDMA_PS_TCP);
	resolve(id, "127.0.0.1", 1);
	t_true(id->verbs != NULL, "localhost isn't this node");
	end_id(id);
	rdma_destroy_event_channel(channel);
}

static void test_wrong_order(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	uint8_t byte = 1;
	int yes = 1;

	(void)state;
	t_true(rdma_notify(id, IBV_EVENT_COMM_EST) == -1 && errno == EINVAL, "a notification");
	t_true(rdma_reject(id, NULL, 0) == -1 && errno == EINVAL, "a rejection");
	t_true(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &yes, sizeof(yes)) == -1 &&
		       errno == EINVAL,
	       "an option of the wrong length");
	t_true(rdma_set_option(id, RDMA_OPTION_ID, 99, &yes, sizeof(yes)) == -1 && errno == ENOSYS,
	       "an unknown option");
	t_ok(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, sizeof(byte)));
	t_ok(rdma_listen(id, 1)); /* binds it */
	t_true(rdma_get_src_port(id) != 0, "an unbound listener has no port");
	t_true(bind_to(id, NODE0, 0) == EINVAL, "a listener was bound again");
	end_id(id);
	rdma_destroy_event_channel(channel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_address_in_use), cmocka_unit_test(test_shared_port),
		cmocka_unit_test(test_wrong_address),  cmocka_unit_test(test_wildcard),
		cmocka_unit_test(test_wrong_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
