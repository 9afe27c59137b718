/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_clock_world.c - threads in virtual time that wait in the kernel come back at the time at
 * which another thread ended their wait, however long that one sleeps next.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock_time.h"

enum { LATER = 10, LONG = 100 }; /* s */

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	/* This call makes the thread join the clock. */
	t_qp_free(t_qp(dev, NULL));
	return 0;
}

static void passed(uint64_t since, uint64_t ns)
{
	passed_within(since, ns, 200000);
}

/* A thread that calls fn(fd) after LATER, and then sleeps for LONG. */
struct helper {
	pthread_t thread;
	void (*fn)(int fd);
	int fd;
};

static void *helper_main(void *arg)
{
	const struct helper *helper = arg;

	sleep(LATER);
	helper->fn(helper->fd);
	sleep(LONG);
	return NULL;
}

static void start(struct helper *helper, void (*fn)(int fd), int fd)
{
	*helper = (struct helper){.fn = fn, .fd = fd};
	t_ok(pthread_create(&helper->thread, NULL, helper_main, helper));
}

static void finish(struct helper *helper)
{
	t_ok(pthread_join(helper->thread, NULL));
}

/* ---- sockets ---- */

static struct sockaddr_un address;
static socklen_t address_len;

/* Returns a listening socket whose queue of connections is full. */
static int listen_full(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), client;

	address = (struct sockaddr_un){.sun_family = AF_UNIX};
	address_len = sizeof(address);
	t_ok(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)));
	t_ok(getsockname(fd, (struct sockaddr *)&address, &address_len));
	t_ok(listen(fd, 0));
	do
		client = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	while (!connect(client, (struct sockaddr *)&address, address_len));
	t_eq(errno, EAGAIN);
	close(client);
	return fd;
}

static void connect_once(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	t_ok(connect(fd, (struct sockaddr *)&address, address_len));
	close(fd);
}

static void accept_one(int fd)
{
	t_true(accept(fd, NULL, NULL) >= 0, "accept: %s", strerror(errno));
}

static void test_connect(void **state)
{
	int fd = listen_full();
	uint64_t since = t_now();
	struct helper helper;

	(void)state;
	start(&helper, accept_one, fd);
	connect_once();
	passed(since, LATER * SECOND);
	finish(&helper);
	close(fd);
}

/* Checks that no time passes during a wait that a process without a clock ends. */
static void test_connect_to_other(void **state)
{
	const struct timespec moment = {0, 100000000};
	int fd = listen_full(), status;
	uint64_t since = t_now();
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		syscall(SYS_nanosleep, &moment, NULL);
		_exit(accept(fd, NULL, NULL) < 0);
	}
	connect_once();
	passed(since, 0);
	t_eq(waitpid(pid, &status, 0), pid);
	t_eq(status, 0);
	close(fd);
}

/* Checks that an invalid address is an error. */
static void test_connect_to_nothing(void **state)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	t_eq(connect(fd, NULL, 0), -1);
	t_eq(errno, EINVAL);
	t_eq(connect(fd, NULL, sizeof(address)), -1);
	t_eq(errno, EFAULT);
	close(fd);
}

/* ---- pipes ---- */

static char room[1 << 20];

static void read_all(int fd)
{
	t_true(read(fd, room, sizeof(room)) > 0, "read: %s", strerror(errno));
}

static void test_write(void **state)
{
	struct helper helper;
	uint64_t since;
	int ends[2];

	(void)state;
	t_ok(pipe(ends));
	t_ok(fcntl(ends[1], F_SETFL, O_NONBLOCK));
	while (write(ends[1], room, sizeof(room)) > 0)
		;
	t_ok(fcntl(ends[1], F_SETFL, 0));
	since = t_now();
	start(&helper, read_all, ends[0]);
	t_eq(write(ends[1], "x", 1), 1);
	passed(since, LATER * SECOND);
	finish(&helper);
	close(ends[0]);
	close(ends[1]);
}

static void write_one(int fd)
{
	t_eq(write(fd, "x", 1), 1);
}

/* Checks a wait in a system call that goes around the C library. */
static void test_unknown_call(void **state)
{
	struct helper helper;
	uint64_t since;
	int ends[2];
	char c;

	(void)state;
	t_ok(pipe(ends));
	since = t_now();
	start(&helper, write_one, ends[1]);
	t_eq(syscall(SYS_read, ends[0], &c, 1), 1);
	passed(since, LATER * SECOND);
	finish(&helper);
	close(ends[0]);
	close(ends[1]);
}

/* Checks a wait for a pipe that has the descriptor of a completion channel which the program closed
 * itself. */
static void test_reused_descriptor(void **state)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(dev->ctx);
	struct pollfd wait = {.events = POLLIN};
	struct helper helper;
	uint64_t since;
	int ends[2];

	(void)state;
	t_true(channel, "ibv_create_comp_channel: %s", strerror(errno));
	t_ok(pipe(ends));
	wait.fd = channel->fd;
	t_eq(dup2(ends[0], channel->fd), channel->fd);
	since = t_now();
	start(&helper, write_one, ends[1]);
	t_eq(poll(&wait, 1, 2 * LONG * 1000), 1);
	passed(since, LATER * SECOND);
	finish(&helper);
	t_ok(ibv_destroy_comp_channel(channel));
	close(ends[0]);
	close(ends[1]);
}

static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	_Atomic bool over;
	int end;
} idle = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static void *await_thread(void *arg)
{
	pthread_mutex_lock(&idle.lock);
	while (!atomic_load(&idle.over))
		pthread_cond_wait(&idle.ended, &idle.lock);
	pthread_mutex_unlock(&idle.lock);
	return arg;
}

static void *await_world(void *arg)
{
	struct epoll_event event = {.events = EPOLLIN};
	int set = epoll_create1(0);

	epoll_ctl(set, EPOLL_CTL_ADD, idle.end, &event);
	epoll_wait(set, &event, 1, -1);
	close(set);
	pthread_mutex_lock(&idle.lock);
	atomic_store(&idle.over, true);
	pthread_cond_signal(&idle.ended);
	pthread_mutex_unlock(&idle.lock);
	return arg;
}

/* Checks that a process without a clock ends the wait of a thread by writing to its descriptor,
 * while another thread waits for that thread and a third one polls. */
static void test_world_ends_wait(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 1, NULL, NULL, 0);
	const struct timespec moment = {0, 100000000};
	pthread_t threads[2];
	struct ibv_wc wc;
	int ends[2], status;
	pid_t pid;

	(void)state;
	t_true(cq, "ibv_create_cq: %s", strerror(errno));
	t_ok(pipe(ends));
	idle.end = ends[0];
	t_ok(pthread_create(&threads[0], NULL, await_thread, NULL));
	t_ok(pthread_create(&threads[1], NULL, await_world, NULL));
	pid = fork();
	if (!pid) {
		syscall(SYS_nanosleep, &moment, NULL);
		_exit(write(ends[1], "x", 1) != 1);
	}
	while (!atomic_load(&idle.over))
		t_eq(ibv_poll_cq(cq, 1, &wc), 0);
	for (int i = 0; i < 2; i++)
		t_ok(pthread_join(threads[i], NULL));
	t_eq(waitpid(pid, &status, 0), pid);
	t_eq(status, 0);
	t_ok(ibv_destroy_cq(cq));
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connect, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_connect_to_other, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_connect_to_nothing, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_write, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_unknown_call, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_reused_descriptor, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_world_ends_wait, setup, t_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
