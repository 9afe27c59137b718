/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for completions, counts and events: by file descriptor, in fi_cq_sread(), fi_cntr_wait()
 * and fi_eq_sread(), and being woken. One process with two endpoints, which send to each other.
 *
 * test_wait, under "softhca run"
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "util.h"

static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cqs[2];
	struct fid_cntr *received; /* by the second endpoint */
	struct fid_ep *eps[2];
	fi_addr_t addrs[2];
} all;

/* ---- the objects ---- */

static void open_domain(enum fi_progress progress)
{
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av = {.type = FI_AV_TABLE};

	t_holds(hints);
	hints->caps = FI_MSG;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->data_progress = progress;
	hints->fabric_attr->prov_name = strdup("tupleq");
	t_ok(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &all.info));
	fi_freeinfo(hints);
	t_ok(fi_fabric(all.info->fabric_attr, &all.fabric, NULL));
	t_ok(fi_domain(all.fabric, all.info, &all.domain, NULL));
	t_ok(fi_av_open(all.domain, &av, &all.av, NULL));
}

static void open_all(enum fi_wait_obj kind, enum fi_progress progress)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_MSG, .wait_obj = kind};
	struct fi_cntr_attr cntr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = kind};
	uint64_t name[2];

	open_domain(progress);
	t_ok(fi_cntr_open(all.domain, &cntr, &all.received, NULL));
	for (unsigned i = 0; i < 2; i++) {
		size_t len = sizeof(name);

		t_ok(fi_cq_open(all.domain, &cq, &all.cqs[i], NULL));
		t_ok(fi_endpoint(all.domain, all.info, &all.eps[i], NULL));
		t_ok(fi_ep_bind(all.eps[i], &all.cqs[i]->fid, FI_TRANSMIT | FI_RECV));
		t_ok(fi_ep_bind(all.eps[i], &all.av->fid, 0));
		if (i == 1)
			t_ok(fi_ep_bind(all.eps[i], &all.received->fid, FI_RECV));
		t_ok(fi_enable(all.eps[i]));
		t_ok(fi_getname(&all.eps[i]->fid, name, &len));
		t_eq(fi_av_insert(all.av, name, 1, &all.addrs[i], 0, NULL), 1);
	}
}

static void close_all(void)
{
	for (unsigned i = 0; i < 2; i++) {
		t_ok(fi_close(&all.eps[i]->fid));
		t_ok(fi_close(&all.cqs[i]->fid));
	}
	t_ok(fi_close(&all.received->fid));
	t_ok(fi_close(&all.av->fid));
	t_ok(fi_close(&all.domain->fid));
	t_ok(fi_close(&all.fabric->fid));
	fi_freeinfo(all.info);
}

static void post(unsigned char *byte)
{
	ssize_t rc;

	while ((rc = fi_recv(all.eps[1], byte, 1, NULL, FI_ADDR_UNSPEC, byte)) == -FI_EAGAIN)
		;
	t_eq(rc, 0);
}

static void send_byte(unsigned char value)
{
	ssize_t rc;

	while ((rc = fi_inject(all.eps[0], &value, 1, all.addrs[1])) == -FI_EAGAIN)
		;
	t_eq(rc, 0);
}

static void *send_in_thread(void *arg)
{
	send_byte(*(unsigned char *)arg);
	return NULL;
}

/* ---- completion queues ---- */

static void check_descriptor(enum fi_progress progress)
{
	struct fi_cq_msg_entry entry;
	enum fi_wait_obj kind;
	struct fid *fids[1];
	unsigned char byte = 0, sent = 5;
	struct pollfd fd = {.events = POLLIN};
	pthread_t thread;

	open_all(FI_WAIT_FD, progress);
	fids[0] = &all.cqs[1]->fid;
	t_ok(fi_control(fids[0], FI_GETWAITOBJ, &kind));
	t_eq(kind, FI_WAIT_FD);
	t_ok(fi_control(fids[0], FI_GETWAIT, &fd.fd));
	for (unsigned i = 0; i < 3; i++) {
		post(&byte);
		t_ok(fi_trywait(all.fabric, fids, 1));
		t_eq(poll(&fd, 1, 0), 0);
		sent++;
		t_ok(pthread_create(&thread, NULL, send_in_thread, &sent));
		t_eq(poll(&fd, 1, 60000), 1);
		t_ok(pthread_join(thread, NULL));
		t_eq(fi_trywait(all.fabric, fids, 1), -FI_EAGAIN);
		t_eq(fi_cq_read(all.cqs[1], &entry, 1), 1);
		t_true(entry.op_context == &byte, "the completion is another operation's");
		t_eq(entry.len, 1);
		t_eq(byte, sent);
		t_eq(fi_cq_read(all.cqs[1], &entry, 1), -FI_EAGAIN);
	}
	close_all();
}

static void descriptor(void **state)
{
	(void)state;
	check_descriptor(FI_PROGRESS_AUTO);
	check_descriptor(FI_PROGRESS_MANUAL);
}

static void *signal_in_thread(void *arg)
{
	(void)arg;
	t_ok(fi_cq_signal(all.cqs[1]));
	return NULL;
}

static void sleeping(void **state)
{
	struct fi_cq_msg_entry entries[4];
	unsigned char bytes[2], sent = 9;
	pthread_t thread;

	(void)state;
	open_all(FI_WAIT_UNSPEC, FI_PROGRESS_AUTO);
	t_eq(fi_cq_sread(all.cqs[1], entries, 4, NULL, 0), -FI_EAGAIN);
	t_eq(fi_cq_sread(all.cqs[1], entries, 4, NULL, 20), -FI_EAGAIN);
	post(&bytes[0]);
	post(&bytes[1]);
	t_ok(pthread_create(&thread, NULL, send_in_thread, &sent));
	t_eq(fi_cq_sread(all.cqs[1], entries, 4, NULL, -1), 1);
	t_ok(pthread_join(thread, NULL));
	t_eq(bytes[0], 9);
	send_byte(10);
	t_eq(fi_cq_sread(all.cqs[1], entries, 4, NULL, 60000), 1);
	t_eq(bytes[1], 10);
	/* A signal ends a wait, before it begins or later, and only one. */
	t_ok(pthread_create(&thread, NULL, signal_in_thread, NULL));
	t_eq(fi_cq_sread(all.cqs[1], entries, 4, NULL, -1), -FI_EAGAIN);
	t_ok(pthread_join(thread, NULL));
	t_eq(fi_cq_sread(all.cqs[1], entries, 4, NULL, 20), -FI_EAGAIN);
	close_all();
}

/* Each format has the fields of the one before; an error goes before what follows it. */
static void formats(void **state)
{
	static const enum fi_cq_format kinds[] = {FI_CQ_FORMAT_UNSPEC, FI_CQ_FORMAT_CONTEXT,
						  FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA,
						  FI_CQ_FORMAT_TAGGED};
	struct fi_cq_err_entry error = {0};

	(void)state;
	open_domain(FI_PROGRESS_AUTO);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct fi_cq_attr attr = {.format = kinds[i], .wait_obj = FI_WAIT_NONE};
		struct fi_cq_tagged_entry entry;
		struct fid_cq *cq;
		int fd;

		t_ok(fi_cq_open(all.domain, &attr, &cq, NULL));
		t_eq(fi_cq_read(cq, &entry, 1), -FI_EAGAIN);
		t_eq(fi_cq_readerr(cq, &error, 0), -FI_EAGAIN);
		t_eq(fi_cq_sread(cq, &entry, 1, NULL, 0), -FI_EINVAL);
		t_eq(fi_cq_signal(cq), -FI_EINVAL);
		t_eq(fi_control(&cq->fid, FI_GETWAIT, &fd), -FI_EINVAL);
		t_true(strlen(fi_cq_strerror(cq, FI_ETRUNC, NULL, NULL, 0)), "no text");
		t_ok(fi_close(&cq->fid));
		attr.wait_obj = FI_WAIT_MUTEX_COND;
		t_eq(fi_cq_open(all.domain, &attr, &cq, NULL), -FI_ENOSYS);
	}
	t_eq(fi_close(&all.domain->fid), -FI_EBUSY);
	t_ok(fi_close(&all.av->fid));
	t_ok(fi_close(&all.domain->fid));
	t_ok(fi_close(&all.fabric->fid));
	fi_freeinfo(all.info);
}

/* ---- counters ---- */

static void counters(void **state)
{
	struct fid *fids[1];
	unsigned char bytes[3], sent = 1;
	pthread_t thread;

	(void)state;
	open_all(FI_WAIT_FD, FI_PROGRESS_AUTO);
	fids[0] = &all.received->fid;
	t_eq(fi_cntr_wait(all.received, 1, 20), -FI_ETIMEDOUT);
	t_ok(fi_cntr_wait(all.received, 0, 0));
	for (unsigned i = 0; i < 3; i++)
		post(&bytes[i]);
	t_ok(fi_trywait(all.fabric, fids, 1));
	t_ok(pthread_create(&thread, NULL, send_in_thread, &sent));
	t_ok(fi_cntr_wait(all.received, 1, -1));
	t_ok(pthread_join(thread, NULL));
	t_eq(fi_cntr_read(all.received), 1);
	send_byte(2);
	send_byte(3);
	t_ok(fi_cntr_wait(all.received, 3, 60000));
	t_ok(fi_cntr_set(all.received, 10));
	t_ok(fi_cntr_add(all.received, 5));
	t_ok(fi_cntr_wait(all.received, 15, 0));
	/* An error counts apart. */
	post(&bytes[0]);
	t_ok((int)fi_cancel(&all.eps[1]->fid, &bytes[0]));
	t_eq(fi_cntr_readerr(all.received), 1);
	t_ok(fi_cntr_seterr(all.received, 3));
	t_ok(fi_cntr_adderr(all.received, 1));
	t_eq(fi_cntr_readerr(all.received), 4);
	t_eq(fi_cntr_read(all.received), 15);
	close_all();
}

/* ---- several sleepers ---- */

#define SLEEPERS 6
#define TURNS    100

/* Waits until it is this thread's turn, for each of its turns, and gives the turn to the next one.
 */
static void *take_turns(void *arg)
{
	const uint64_t *index = arg;

	for (uint64_t turn = 0; turn < TURNS; turn++) {
		t_ok(fi_cntr_wait(all.received, turn * SLEEPERS + *index + 1, -1));
		t_ok(fi_cntr_add(all.received, 1));
	}
	return NULL;
}

static void *take_completions(void *arg)
{
	struct fi_cq_msg_entry entry;

	(void)arg;
	for (unsigned turn = 0; turn < TURNS; turn++)
		t_eq(fi_cq_sread(all.cqs[1], &entry, 1, NULL, -1), 1);
	return NULL;
}

static void start_sleepers(pthread_t *threads, uint64_t *indices, void *(*fn)(void *arg))
{
	/* A thread that is never woken would wait for ever. */
	alarm(60);
	for (unsigned i = 0; i < SLEEPERS; i++) {
		indices[i] = i;
		t_ok(pthread_create(&threads[i], NULL, fn, &indices[i]));
	}
}

static void join_sleepers(const pthread_t *threads)
{
	for (unsigned i = 0; i < SLEEPERS; i++)
		t_ok(pthread_join(threads[i], NULL));
	alarm(0);
}

/* Threads that wait for different counts, and for one completion each. */
static void sleepers(void **state)
{
	static unsigned char bytes[SLEEPERS * TURNS];
	uint64_t indices[SLEEPERS];
	pthread_t threads[SLEEPERS];

	(void)state;
	open_all(FI_WAIT_FD, FI_PROGRESS_AUTO);
	start_sleepers(threads, indices, take_turns);
	t_ok(fi_cntr_add(all.received, 1));
	join_sleepers(threads);
	t_eq(fi_cntr_read(all.received), SLEEPERS * TURNS + 1);
	for (unsigned i = 0; i < SLEEPERS * TURNS; i++)
		post(&bytes[i]);
	start_sleepers(threads, indices, take_completions);
	for (unsigned i = 0; i < SLEEPERS * TURNS; i++)
		send_byte((unsigned char)i);
	join_sleepers(threads);
	close_all();
}

/* ---- event queues ---- */

static void *write_in_thread(void *arg)
{
	struct fi_eq_entry entry = {.context = arg, .data = 77};

	t_eq(fi_eq_write(arg, FI_NOTIFY, &entry, sizeof(entry), 0), (ssize_t)sizeof(entry));
	return NULL;
}

static void events(void **state)
{
	struct fi_eq_attr attr = {.size = 2, .flags = FI_WRITE, .wait_obj = FI_WAIT_FD};
	struct fi_eq_entry entry = {.data = 1};
	struct fi_eq_err_entry error = {0};
	uint32_t event = 0;
	struct fid_eq *eq;
	pthread_t thread;

	(void)state;
	open_domain(FI_PROGRESS_AUTO);
	t_ok(fi_eq_open(all.fabric, &attr, &eq, NULL));
	t_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	t_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), 20, 0), -FI_EAGAIN);
	t_ok(pthread_create(&thread, NULL, write_in_thread, eq));
	t_eq(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, FI_PEEK), (ssize_t)sizeof(entry));
	t_ok(pthread_join(thread, NULL));
	t_eq(event, FI_NOTIFY);
	t_eq(entry.data, 77);
	t_eq(fi_eq_read(eq, &event, &entry, sizeof(entry) - 1, 0), -FI_ETOOSMALL);
	write_in_thread(eq);
	t_eq(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), -FI_EAGAIN);
	for (unsigned i = 0; i < 2; i++)
		t_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), (ssize_t)sizeof(entry));
	t_eq(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAGAIN);
	t_eq(fi_eq_readerr(eq, &error, 0), -FI_EAGAIN);
	t_eq(fi_close(&all.fabric->fid), -FI_EBUSY);
	t_ok(fi_close(&eq->fid));
	attr.flags = 0;
	t_ok(fi_eq_open(all.fabric, &attr, &eq, NULL));
	t_eq(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0), -FI_EINVAL);
	t_ok(fi_close(&eq->fid));
	t_ok(fi_close(&all.av->fid));
	t_ok(fi_close(&all.domain->fid));
	t_ok(fi_close(&all.fabric->fid));
	fi_freeinfo(all.info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptor), cmocka_unit_test(sleeping), cmocka_unit_test(formats),
		cmocka_unit_test(counters),   cmocka_unit_test(sleepers), cmocka_unit_test(events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
