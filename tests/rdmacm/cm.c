/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cm.c - see cm.h.
 */
#include "cm.h"

#include <arpa/inet.h>
#include <poll.h>

struct sockaddr_in address(const char *ip, unsigned port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	t_holds(inet_pton(AF_INET, ip, &in.sin_addr) == 1);
	return in;
}

struct rdma_cm_id *new_id(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	t_ok(rdma_create_id(channel, &id, NULL, ps));
	return id;
}

int bind_to(struct rdma_cm_id *id, const char *ip, unsigned port)
{
	struct sockaddr_in in = address(ip, port);

	return rdma_bind_addr(id, (struct sockaddr *)&in) ? errno : 0;
}

bool is_readable(struct rdma_event_channel *channel, int ms)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	return poll(&fd, 1, ms) == 1;
}

struct rdma_cm_event *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	t_true(is_readable(channel, T_DEADLINE_MS), "no event comes, not %s", rdma_event_str(type));
	t_ok(rdma_get_cm_event(channel, &event));
	t_true(event->event == type, "the event is %s with status %d, not %s",
	       rdma_event_str(event->event), event->status, rdma_event_str(type));
	return event;
}

void expect_status(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = expect(channel, type);

	t_eq(event->status, status);
	t_ok(rdma_ack_cm_event(event));
}

struct rdma_cm_id *expect_request(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = expect(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = event->id;

	t_ok(rdma_ack_cm_event(event));
	return id;
}

void resolve(struct rdma_cm_id *id, const char *ip, unsigned port)
{
	struct sockaddr_in in = address(ip, port);

	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 2000));
	expect_status(id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	t_ok(rdma_resolve_route(id, 2000));
	expect_status(id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->qp_type,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	t_ok(rdma_create_qp(id, NULL, &attr));
}

struct pair begin_pair(int backlog)
{
	struct pair pair = {.at_server = rdma_create_event_channel(),
			    .at_client = rdma_create_event_channel()};

	t_true(pair.at_server && pair.at_client, "no channel: %s", strerror(errno));
	pair.listener = new_id(pair.at_server, RDMA_PS_TCP);
	t_ok(bind_to(pair.listener, "0.0.0.0", 0));
	t_ok(rdma_listen(pair.listener, backlog));
	pair.client = new_id(pair.at_client, RDMA_PS_TCP);
	resolve(pair.client, NODE0, ntohs(rdma_get_src_port(pair.listener)));
	return pair;
}

void end_id(struct rdma_cm_id *id)
{
	if (!id)
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	t_ok(rdma_destroy_id(id));
}

void end_pair(struct pair *pair)
{
	end_id(pair->client);
	end_id(pair->server);
	end_id(pair->listener);
	rdma_destroy_event_channel(pair->at_client);
	rdma_destroy_event_channel(pair->at_server);
}

void establish(struct pair *pair)
{
	struct rdma_conn_param param = {.retry_count = 3, .rnr_retry_count = 7};

	make_qp(pair->client);
	t_ok(rdma_connect(pair->client, &param));
	pair->server = expect_request(pair->at_server);
	make_qp(pair->server);
	t_ok(rdma_accept(pair->server, &param));
	expect_status(pair->at_client, RDMA_CM_EVENT_ESTABLISHED, 0);
	expect_status(pair->at_server, RDMA_CM_EVENT_ESTABLISHED, 0);
}
