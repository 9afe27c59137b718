/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_descriptors.c - an event channel lives until its last descriptor is closed, however the
 * descriptors were made; and a child can't use its parent's.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../softhca/stat.h"
#include "cm.h"

#define NUMBER 200 /* of a descriptor that nothing else has */

static int by_dup(int fd)
{
	return dup(fd);
}

static int by_dup2(int fd)
{
	return dup2(fd, NUMBER);
}

static int by_dup3(int fd)
{
	return dup3(fd, NUMBER, O_CLOEXEC);
}

static int by_fcntl(int fd)
{
	return fcntl(fd, F_DUPFD, NUMBER);
}

static int by_fcntl_cloexec(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, NUMBER);
}

static const struct {
	int (*copy)(int fd);
	bool is_chosen, closes_on_exec;
} ways[] = {
	{by_dup, false, false},  {by_dup2, true, false},         {by_dup3, true, true},
	{by_fcntl, true, false}, {by_fcntl_cloexec, true, true},
};

/* Returns how many cells of a kind are taken. */
static int cells(const char *kind)
{
	json_t *doc = stat_json(),
	       *count = json_object_get(json_object_get(doc, "connection_cells"), kind);
	int taken = (int)json_integer_value(count);

	t_true(count != NULL, "no count of %s", kind);
	json_decref(doc);
	return taken;
}

static struct rdma_event_channel *new_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	t_true(channel != NULL, "no channel: %s", strerror(errno));
	return channel;
}

/* Expects a channel to be one: an identifier of it gets its event. */
static void expect_works(struct rdma_event_channel *channel, struct rdma_cm_id *id)
{
	struct sockaddr_in in = address(NODE1, 1);
	struct stat st;

	t_ok(fstat(channel->fd, &st));
	t_true(S_ISCHR(st.st_mode), "the mode is %o", st.st_mode);
	t_ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&in, 100));
	expect_status(channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

static void test_copies(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		struct rdma_event_channel *channel = new_channel();
		struct rdma_cm_id *first = new_id(channel, RDMA_PS_TCP),
				  *second = new_id(channel, RDMA_PS_TCP);
		int fd = channel->fd, copy = ways[i].copy(fd);

		t_true(copy >= 0 && copy != fd, "%s", strerror(errno));
		if (ways[i].is_chosen)
			t_eq(copy, NUMBER);
		t_eq(fcntl(copy, F_GETFD), ways[i].closes_on_exec ? FD_CLOEXEC : 0);
		t_ok(close(fd));
		channel->fd = copy;
		expect_works(channel, first);
		fd = dup(copy);
		t_ok(close(fd));
		expect_works(channel, second);
		end_id(first);
		t_ok(close(copy));
		t_eq(cells("channels"), 0);
		/* Its kernel has destroyed it. */
		t_eq(cells("identifiers"), 0);
		t_true(write(copy, "", 1) == -1 && errno == EBADF, "%s", strerror(errno));
		channel->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		rdma_destroy_event_channel(channel);
	}
}

/* A descriptor that dup2() replaces is closed, too. */
static void test_replaced(void **state)
{
	struct rdma_event_channel *first = new_channel(), *second = new_channel();
	struct rdma_cm_id *id = new_id(second, RDMA_PS_TCP), *gone = new_id(first, RDMA_PS_TCP);

	(void)state;
	t_eq(cells("channels"), 2);
	t_eq(dup2(second->fd, first->fd), first->fd);
	t_eq(cells("channels"), 1);
	t_eq(cells("identifiers"), 1);
	/* Both are the second channel. */
	t_true(rdma_destroy_id(gone) == -1 && errno == ENOENT, "%s", strerror(errno));
	t_eq(dup2(second->fd, first->fd), first->fd);
	t_eq(dup2(second->fd, second->fd), second->fd);
	t_true(dup3(second->fd, second->fd, 0) == -1 && errno == EINVAL, "%s", strerror(errno));
	t_true(dup2(second->fd, -1) == -1 && errno == EBADF, "%s", strerror(errno));
	rdma_destroy_event_channel(first);
	expect_works(second, id);
	end_id(id);
	rdma_destroy_event_channel(second);
	t_eq(cells("channels"), 0);
}

/* A command that names a channel takes each of its descriptors. */
static void test_migrate(void **state)
{
	struct rdma_event_channel *from = new_channel(), *to = new_channel();
	struct rdma_cm_id *id = new_id(from, RDMA_PS_TCP);
	int copy = dup(to->fd);

	(void)state;
	t_ok(close(to->fd));
	to->fd = copy;
	t_ok(rdma_migrate_id(id, to));
	expect_works(to, id);
	end_id(id);
	rdma_destroy_event_channel(from);
	rdma_destroy_event_channel(to);
}

/* A child, whose memory is its own after fork() and its parent's after vfork(), changes nothing. */
static void test_children(void **state)
{
	struct rdma_event_channel *channel = new_channel();
	struct rdma_cm_id *id = new_id(channel, RDMA_PS_TCP);
	int fd = channel->fd, status, copy;
	pid_t child;

	(void)state;
	child = fork();
	if (!child) {
		t_child_begin();
		copy = dup(fd);
		t_true(copy >= 0, "%s", strerror(errno));
		t_true(write(copy, "", 1) == -1 && errno == EPERM, "%s", strerror(errno));
		t_ok(close(fd));
		t_true(write(copy, "", 1) == -1 && errno == EPERM, "%s", strerror(errno));
		t_ok(close(copy));
		_exit(0);
	}
	t_eq(waitpid(child, &status, 0), child);
	t_eq(status, 0);
	child = vfork();
	if (!child) {
		close(fd);
		_exit(0);
	}
	t_eq(waitpid(child, &status, 0), child);
	t_eq(status, 0);
	t_eq(cells("channels"), 1);
	expect_works(channel, id);
	end_id(id);
	rdma_destroy_event_channel(channel);
	t_eq(cells("channels"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_migrate),
		cmocka_unit_test(test_children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
