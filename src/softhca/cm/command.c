/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * command.c - commands, one function each, in the order of their numbers. The checks and errnos are
 * those of Linux's rdma_ucm.
 */
#include "command.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "bind.h"
#include "connection.h"
#include "events.h"
#include "group.h"
#include "life.h"
#include "option.h"
#include "query.h"
#include "request.h"
#include "resolve.h"
#include "route.h"

/* A command that is executed. */
struct call {
	struct shca_fabric *fabric;
	uint32_t channel;
	shca_command_channel_fn *channel_of;
	const void *in; /* behind the header */
	size_t in_len, out_len;
	bool token_was_read;
};

static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

/* Stores the identifier of that number. Returns 0, -ENOENT (there is none) or -EINVAL (it belongs
 * to another channel). */
static int find(const struct call *call, uint32_t number, struct shca_cm_id **id)
{
	*id = shca_cm_id(call->fabric, number);
	if (!*id)
		return -ENOENT;
	return (*id)->channel == call->channel ? 0 : -EINVAL;
}

/* Finds an identifier that must have a device already. */
static int find_with_device(const struct call *call, uint32_t number, struct shca_cm_id **id)
{
	int rc = find(call, number, id);

	return rc || (*id)->hca ? rc : -EINVAL;
}

/* Copies an address of that many bytes. Returns 0 or -EINVAL. */
static int copy_address(const void *from, size_t size, union shca_cm_address *to)
{
	memset(to, 0, sizeof(*to));
	if (!size)
		return 0;
	memcpy(&to->family, from, sizeof(to->family));
	if (size != shca_route_size(to->family))
		return -EINVAL;
	memcpy(to, from, size);
	return 0;
}

/* Copies an IP address of an older command, which has room for any. */
static void copy_ip(const struct sockaddr_in6 *from, union shca_cm_address *to)
{
	uint16_t family = from->sin6_family;

	memset(to, 0, sizeof(*to));
	memcpy(to, from, family == AF_INET || family == AF_INET6 ? shca_route_size(family) : 0);
}

static int create_id(const struct call *call)
{
	const struct rdma_ucm_create_id *cmd = call->in;
	int64_t id = shca_life_create(call->fabric, call->channel, cmd);

	if (id < 0)
		return (int)id;
	((struct rdma_ucm_create_id_resp *)pointer(cmd->response))->id = (uint32_t)id;
	return 0;
}

static int destroy_id(const struct call *call)
{
	const struct rdma_ucm_destroy_id *cmd = call->in;
	struct rdma_ucm_destroy_id_resp *resp = pointer(cmd->response);
	struct shca_cm_id *id;
	int rc = find(call, cmd->id, &id);

	if (!rc)
		resp->events_reported = shca_life_destroy(call->fabric, id);
	return rc;
}

static int bind_ip(const struct call *call)
{
	const struct rdma_ucm_bind_ip *cmd = call->in;
	union shca_cm_address address;
	struct shca_cm_id *id;
	int rc = find(call, cmd->id, &id);

	copy_ip(&cmd->addr, &address);
	if (!address.family)
		return -EINVAL;
	return rc ? rc : shca_bind_address(call->fabric, id, &address);
}

static int resolve_ip(const struct call *call)
{
	const struct rdma_ucm_resolve_ip *cmd = call->in;
	union shca_cm_address source, destination;
	struct shca_cm_id *id;
	int rc = find(call, cmd->id, &id);

	copy_ip(&cmd->src_addr, &source);
	copy_ip(&cmd->dst_addr, &destination);
	return rc ? rc
		  : shca_resolve_address(call->fabric, id, &source, &destination, cmd->timeout_ms);
}

static int resolve_route(const struct call *call)
{
	const struct rdma_ucm_resolve_route *cmd = call->in;
	struct shca_cm_id *id;
	int rc = find_with_device(call, cmd->id, &id);

	return rc ? rc : shca_resolve_route(call->fabric, id, cmd->timeout_ms);
}

static int query_route(const struct call *call)
{
	const struct rdma_ucm_query *cmd = call->in;
	struct rdma_ucm_query_route_resp resp;
	struct shca_cm_id *id;
	int rc = find(call, cmd->id, &id);

	if (rc)
		return rc;
	shca_query_route(call->fabric, id, &resp);
	memcpy(pointer(cmd->response), &resp,
	       call->out_len < sizeof(resp) ? call->out_len : sizeof(resp));
	return 0;
}

static int connect_id(const struct call *call)
{
	struct rdma_ucm_connect cmd = {.id = 0};
	struct shca_cm_id *id;
	int rc;

	/* Older programs don't send the end of this. */
	memcpy(&cmd, call->in, call->in_len < sizeof(cmd) ? call->in_len : sizeof(cmd));
	rc = cmd.conn_param.valid ? find_with_device(call, cmd.id, &id) : -EINVAL;
	return rc ? rc : shca_request_send(call->fabric, id, &cmd);
}

static int listen_id(const struct call *call)
{
	const struct rdma_ucm_listen *cmd = call->in;
	struct shca_cm_id *id;
	int rc = find(call, cmd->id, &id);

	return rc ? rc : shca_bind_listen(call->fabric, id, (int32_t)cmd->backlog);
}

static int accept_id(const struct call *call)
{
	struct rdma_ucm_accept cmd = {.id = 0};
	struct shca_cm_id *id;
	int rc;

	memcpy(&cmd, call->in, call->in_len < sizeof(cmd) ? call->in_len : sizeof(cmd));
	rc = find_with_device(call, cmd.id, &id);
	if (rc)
		return rc;
	/* Events may follow before the program is back from this command. */
	if (cmd.conn_param.valid) {
		uint64_t uid = id->uid;

		id->uid = cmd.uid;
		rc = shca_connection_accept(call->fabric, id, &cmd);
		if (rc)
			id->uid = uid;
		return rc;
	}
	return shca_connection_accept(call->fabric, id, &cmd);
}

static int reject_id(const struct call *call)
{
	const struct rdma_ucm_reject *cmd = call->in;
	struct shca_cm_id *id;
	int rc = find_with_device(call, cmd->id, &id);

	return rc ? rc
		  : shca_connection_reject(call->fabric, id, cmd->reason, cmd->private_data,
					   cmd->private_data_len);
}

static int disconnect_id(const struct call *call)
{
	const struct rdma_ucm_disconnect *cmd = call->in;
	struct shca_cm_id *id;
	int rc = find_with_device(call, cmd->id, &id);

	return rc ? rc : shca_connection_disconnect(call->fabric, id);
}

static int init_qp_attr(const struct call *call)
{
	const struct rdma_ucm_init_qp_attr *cmd = call->in;
	struct ib_uverbs_qp_attr attr = {.qp_state = cmd->qp_state};
	struct shca_cm_id *id;
	int rc = cmd->qp_state > IBV_QPS_ERR ? -EINVAL : find_with_device(call, cmd->id, &id);

	if (!rc)
		rc = shca_query_qp(call->fabric, id, &attr);
	if (!rc)
		memcpy(pointer(cmd->response), &attr, sizeof(attr));
	return rc;
}

/* Hands a request's identifier over to the program. */
static void give_request(const struct call *call, struct shca_cm_id *listener, uint32_t request)
{
	struct shca_cm_id *id = shca_cm_id(call->fabric, request);

	listener->backlog++;
	if (!id)
		return;
	id->channel = call->channel;
	id->listener = 0;
}

static int get_event(const struct call *call)
{
	const struct rdma_ucm_get_event *cmd = call->in;
	struct shca_cm_channel *channel = shca_cell(call->fabric, SHCA_CM_CHANNEL, call->channel);
	struct shca_cm_event *event = shca_events_arrived(call->fabric, channel);
	struct shca_cm_id *id;
	struct shca_cm_group *group;

	if (!event)
		return -EAGAIN;
	memcpy(pointer(cmd->response), &event->resp,
	       call->out_len < sizeof(event->resp) ? call->out_len : sizeof(event->resp));
	id = shca_cm_id(call->fabric, event->id);
	if (id) {
		id->events_reported++;
		if (event->request)
			give_request(call, id, event->request - 1);
	}
	group = event->group ? shca_cells_find(call->fabric, SHCA_CM_GROUP, event->group - 1)
			     : NULL;
	if (group)
		group->events_reported++;
	shca_events_remove(call->fabric, channel, event, call->token_was_read);
	return 0;
}

static int set_option(const struct call *call)
{
	const struct rdma_ucm_set_option *cmd = call->in;
	struct shca_cm_id *id;
	int rc = find(call, cmd->id, &id);

	return rc ? rc : shca_option_set(call->fabric, id, cmd, pointer(cmd->optval));
}

static int notify_id(const struct call *call)
{
	const struct rdma_ucm_notify *cmd = call->in;
	struct shca_cm_id *id;
	int rc = find_with_device(call, cmd->id, &id);

	return rc ? rc : shca_connection_notify(call->fabric, id, cmd->event);
}

static int join(const struct call *call, uint32_t number, uint64_t uid, uint64_t response,
		const union shca_cm_address *address)
{
	struct rdma_ucm_create_id_resp *resp = pointer(response);
	struct shca_cm_id *id;
	int64_t group;
	int rc = find(call, number, &id);

	if (rc)
		return rc;
	group = shca_group_join(call->fabric, id, uid, address);
	if (group < 0)
		return (int)group;
	resp->id = (uint32_t)group;
	return 0;
}

static int join_ip(const struct call *call)
{
	const struct rdma_ucm_join_ip_mcast *cmd = call->in;
	union shca_cm_address address;

	copy_ip(&cmd->addr, &address);
	return address.family ? join(call, cmd->id, cmd->uid, cmd->response, &address) : -EINVAL;
}

static int leave_group(const struct call *call)
{
	const struct rdma_ucm_destroy_id *cmd = call->in;
	struct rdma_ucm_destroy_id_resp *resp = pointer(cmd->response);
	struct shca_cm_group *group = shca_cells_find(call->fabric, SHCA_CM_GROUP, cmd->id);
	struct shca_cm_id *id;
	int rc = group ? find(call, group->id, &id) : -ENOENT;

	if (!rc)
		resp->events_reported = shca_life_leave(call->fabric, group);
	return rc;
}

static int migrate_id(const struct call *call)
{
	const struct rdma_ucm_migrate_id *cmd = call->in;
	struct rdma_ucm_migrate_resp *resp = pointer(cmd->response);
	int64_t from = call->channel_of((int)cmd->fd);
	struct shca_cm_id *id = shca_cm_id(call->fabric, cmd->id);

	if (from < 0)
		return (int)from;
	if (!id)
		return -ENOENT;
	if (id->channel != from)
		return -EINVAL;
	resp->events_reported = shca_life_migrate(call->fabric, id, call->channel);
	return 0;
}

static int query(const struct call *call)
{
	const struct rdma_ucm_query *cmd = call->in;
	struct rdma_ucm_query_addr_resp resp;
	struct shca_cm_id *id;
	int rc = find(call, cmd->id, &id);

	if (rc)
		return rc;
	switch (cmd->option) {
	case RDMA_USER_CM_QUERY_ADDR:
		shca_query_addresses(call->fabric, id, &resp);
		break;
	case RDMA_USER_CM_QUERY_GID:
		shca_query_gids(call->fabric, id, &resp);
		break;
	case RDMA_USER_CM_QUERY_PATH:
		if (call->out_len < sizeof(struct rdma_ucm_query_path_resp))
			return -ENOSPC;
		shca_query_path(call->fabric, id, pointer(cmd->response), call->out_len);
		return 0;
	default:
		return -ENOSYS;
	}
	if (call->out_len < offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))
		return -ENOSPC;
	memcpy(pointer(cmd->response), &resp,
	       call->out_len < sizeof(resp) ? call->out_len : sizeof(resp));
	return 0;
}

static int bind_address(const struct call *call)
{
	const struct rdma_ucm_bind *cmd = call->in;
	union shca_cm_address address;
	struct shca_cm_id *id;
	int rc;

	if (cmd->reserved || !cmd->addr_size || copy_address(&cmd->addr, cmd->addr_size, &address))
		return -EINVAL;
	rc = find(call, cmd->id, &id);
	return rc ? rc : shca_bind_address(call->fabric, id, &address);
}

static int resolve_address(const struct call *call)
{
	const struct rdma_ucm_resolve_addr *cmd = call->in;
	union shca_cm_address source, destination;
	struct shca_cm_id *id;
	int rc;

	if (cmd->reserved || copy_address(&cmd->src_addr, cmd->src_size, &source) ||
	    !cmd->dst_size || copy_address(&cmd->dst_addr, cmd->dst_size, &destination))
		return -EINVAL;
	rc = find(call, cmd->id, &id);
	return rc ? rc
		  : shca_resolve_address(call->fabric, id, &source, &destination, cmd->timeout_ms);
}

static int join_address(const struct call *call)
{
	const struct rdma_ucm_join_mcast *cmd = call->in;
	union shca_cm_address address;

	if (!cmd->addr_size || copy_address(&cmd->addr, cmd->addr_size, &address) ||
	    cmd->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return -EINVAL;
	return join(call, cmd->id, cmd->uid, cmd->response, &address);
}

/* The commands; no function: not offered, by Linux neither. */
#define CMD(name, fn, in, out) [RDMA_USER_CM_CMD_##name] = {fn, in, out}
#define END(type, member)      (offsetof(struct type, member) + sizeof(((struct type *)0)->member))
static const struct {
	int (*run)(const struct call *call);
	size_t in, out; /* least bytes */
} commands[] = {
	CMD(CREATE_ID, create_id, sizeof(struct rdma_ucm_create_id),
	    sizeof(struct rdma_ucm_create_id_resp)),
	CMD(DESTROY_ID, destroy_id, sizeof(struct rdma_ucm_destroy_id),
	    sizeof(struct rdma_ucm_destroy_id_resp)),
	CMD(BIND_IP, bind_ip, sizeof(struct rdma_ucm_bind_ip), 0),
	CMD(RESOLVE_IP, resolve_ip, sizeof(struct rdma_ucm_resolve_ip), 0),
	CMD(RESOLVE_ROUTE, resolve_route, sizeof(struct rdma_ucm_resolve_route), 0),
	CMD(QUERY_ROUTE, query_route, sizeof(struct rdma_ucm_query),
	    offsetof(struct rdma_ucm_query_route_resp, ibdev_index)),
	CMD(CONNECT, connect_id, END(rdma_ucm_connect, reserved), 0),
	CMD(LISTEN, listen_id, sizeof(struct rdma_ucm_listen), 0),
	CMD(ACCEPT, accept_id, END(rdma_ucm_accept, reserved), 0),
	CMD(REJECT, reject_id, sizeof(struct rdma_ucm_reject), 0),
	CMD(DISCONNECT, disconnect_id, sizeof(struct rdma_ucm_disconnect), 0),
	CMD(INIT_QP_ATTR, init_qp_attr, sizeof(struct rdma_ucm_init_qp_attr),
	    sizeof(struct ib_uverbs_qp_attr)),
	CMD(GET_EVENT, get_event, sizeof(struct rdma_ucm_get_event),
	    offsetof(struct rdma_ucm_event_resp, reserved)),
	CMD(GET_OPTION, NULL, 0, 0),
	CMD(SET_OPTION, set_option, sizeof(struct rdma_ucm_set_option), 0),
	CMD(NOTIFY, notify_id, sizeof(struct rdma_ucm_notify), 0),
	CMD(JOIN_IP_MCAST, join_ip, sizeof(struct rdma_ucm_join_ip_mcast),
	    sizeof(struct rdma_ucm_create_id_resp)),
	CMD(LEAVE_MCAST, leave_group, sizeof(struct rdma_ucm_destroy_id),
	    sizeof(struct rdma_ucm_destroy_id_resp)),
	CMD(MIGRATE_ID, migrate_id, sizeof(struct rdma_ucm_migrate_id),
	    sizeof(struct rdma_ucm_migrate_resp)),
	CMD(QUERY, query, sizeof(struct rdma_ucm_query), 0),
	CMD(BIND, bind_address, sizeof(struct rdma_ucm_bind), 0),
	CMD(RESOLVE_ADDR, resolve_address, sizeof(struct rdma_ucm_resolve_addr), 0),
	CMD(JOIN_MCAST, join_address, sizeof(struct rdma_ucm_join_mcast),
	    sizeof(struct rdma_ucm_create_id_resp)),
};

bool shca_command_gets_event(const void *command, size_t len)
{
	const struct rdma_ucm_cmd_hdr *hdr = command;

	return len >= sizeof(*hdr) && hdr->cmd == RDMA_USER_CM_CMD_GET_EVENT;
}

ssize_t shca_command_run(struct shca_fabric *fabric, uint32_t channel,
			 shca_command_channel_fn *channel_of, const void *command, size_t len,
			 bool token_was_read)
{
	const struct rdma_ucm_cmd_hdr *hdr = command;
	struct call call = {fabric, channel, channel_of, NULL, 0, 0, token_was_read};
	int rc, cancel;

	if (len < sizeof(*hdr) || hdr->cmd >= sizeof(commands) / sizeof(*commands) ||
	    hdr->in + sizeof(*hdr) > len)
		return -EINVAL;
	if (!commands[hdr->cmd].run)
		return -ENOSYS;
	if (hdr->in < commands[hdr->cmd].in)
		return -EINVAL;
	if (hdr->out < commands[hdr->cmd].out)
		return -ENOSPC;
	call.in = hdr + 1;
	call.in_len = hdr->in;
	call.out_len = hdr->out;
	cancel = shca_cells_lock(fabric);
	rc = commands[hdr->cmd].run(&call);
	shca_cells_unlock(fabric, cancel);
	return rc ? rc : (ssize_t)len;
}
