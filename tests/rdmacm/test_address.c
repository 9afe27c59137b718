/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_address.c - addresses and ports of identifiers, and calls in the wrong order.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <unistd.h>

#include "cm.h"

/* Global IPv6 addresses: of the two nodes, one that nobody has, and one elsewhere. */
#define NODE0_IPV6   "fd00:10:77::1"
#define NODE1_IPV6   "fd00:10:77::2"
#define NOBODY_IPV6  "fd00:10:77::99"
#define OUTSIDE_IPV6 "2001:db8::1"

#define ROCE_V2_IPV6 5 /* index in the GID table of a RoCE port */

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

/* ---- IPv6 ---- */

static struct sockaddr_in6 ipv6(const char *ip, unsigned port)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};

	t_holds(inet_pton(AF_INET6, ip, &in6.sin6_addr) == 1);
	return in6;
}

static bool has_ipv6(const struct sockaddr *address, const char *ip)
{
	struct sockaddr_in6 in6 = ipv6(ip, 0);

	return address && address->sa_family == AF_INET6 &&
	       IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)address)->sin6_addr,
				  &in6.sin6_addr);
}

static void test_interface(void **state)
{
	unsigned ipv4s = 0, globals = 0, link_locals = 0;
	struct ifaddrs *list, *i;

	(void)state;
	t_ok(getifaddrs(&list));
	for (i = list; i; i = i->ifa_next) {
		const struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)i->ifa_addr;

		if (strcmp(i->ifa_name, "ib0") && strcmp(i->ifa_name, "roce0"))
			continue;
		ipv4s += i->ifa_addr->sa_family == AF_INET;
		if (i->ifa_addr->sa_family != AF_INET6)
			continue;
		t_true(has_ipv6(i->ifa_netmask, "ffff:ffff:ffff:ffff::"), "another netmask");
		if (has_ipv6(i->ifa_addr, NODE0_IPV6)) {
			t_eq(in6->sin6_scope_id, 0);
			globals++;
		} else if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr)) {
			t_eq(in6->sin6_scope_id, 7700);
			link_locals++;
		}
	}
	freeifaddrs(list);
	t_eq(ipv4s, 1);
	t_eq(globals, 1);
	t_eq(link_locals, 1);
}

/* The path is one between the GIDs of the addresses. */
static void test_ipv6(void **state)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	struct sockaddr_in6 to = ipv6(NODE1_IPV6, 1), from = ipv6(NODE0_IPV6, 0);
	struct ibv_port_attr port;
	union ibv_gid gid;

	(void)state;
	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000));
	expect_status(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	t_true(has_ipv6(rdma_get_local_addr(id), NODE0_IPV6), "another source");
	t_ok(ibv_query_port(id->verbs, 1, &port));
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		t_ok(ibv_query_gid(id->verbs, 1, ROCE_V2_IPV6, &gid));
		t_ok(memcmp(gid.raw, &from.sin6_addr, sizeof(gid)));
		t_ok(memcmp(id->route.addr.addr.ibaddr.sgid.raw, &from.sin6_addr, sizeof(gid)));
		t_ok(memcmp(id->route.addr.addr.ibaddr.dgid.raw, &to.sin6_addr, sizeof(gid)));
	}
	end_id(id);
	id = new_id(channel, RDMA_PS_TCP);
	t_ok(rdma_bind_addr(id, (struct sockaddr *)&from));
	t_true(id->verbs != NULL, "an interface's address gives no device");
	end_id(id);
	id = new_id(channel, RDMA_PS_TCP);
	t_true(rdma_bind_addr(id, (struct sockaddr *)&to) == -1 && errno == EADDRNOTAVAIL,
	       "bound to the other node's address: %s", strerror(errno));
	to = ipv6(NOBODY_IPV6, 1);
	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 20));
	expect_status(channel, RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT);
	to = ipv6(OUTSIDE_IPV6, 1);
	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 20));
	expect_status(channel, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	end_id(id);
	rdma_destroy_event_channel(channel);
}

/* Sockets reach each interface on this machine. */
static void test_socket(void **state)
{
	int listener = socket(AF_INET6, SOCK_STREAM, 0), fd = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 at = ipv6(NODE1_IPV6, 0), other = ipv6(NODE0_IPV6, 0), in6;
	socklen_t len = sizeof(in6);

	(void)state;
	if (listener < 0)
		t_skip("this machine has no IPv6");
	t_ok(bind(listener, (struct sockaddr *)&at, sizeof(at)));
	t_ok(listen(listener, 1));
	t_ok(getsockname(listener, (struct sockaddr *)&in6, &len));
	at.sin6_port = other.sin6_port = in6.sin6_port;
	t_true(connect(fd, (struct sockaddr *)&other, sizeof(other)) == -1 && errno == ECONNREFUSED,
	       "another node's address: %s", strerror(errno));
	t_ok(connect(fd, (struct sockaddr *)&at, sizeof(at)));
	close(fd);
	close(listener);
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
		cmocka_unit_test(test_interface),      cmocka_unit_test(test_ipv6),
		cmocka_unit_test(test_socket),         cmocka_unit_test(test_wrong_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
