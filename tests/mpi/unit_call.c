/* SPDX-License-Identifier: BSD-3-Clause */
/* The records by which processes announce their operations to coll/tupleq: stamps and calls. */
#include <pthread.h>
#include <stdatomic.h>

#include "../softhca/check.h"
#include "coll/call.h"

static void stamps(void **state)
{
	uint32_t stamp = mca_coll_tupleq_stamp(TUPLEQ_BCAST, 4096, 3, UINT64_MAX);
	uint32_t without_length = mca_coll_tupleq_stamp_void(stamp);

	(void)state;
	t_eq(mca_coll_tupleq_stamp_bytes(stamp), 4096);
	t_true(mca_coll_tupleq_stamp(TUPLEQ_BARRIER, 0, 0, 0) != 0, "a stamp is 0");
	t_eq(mca_coll_tupleq_stamp_bytes(without_length), 0);
	t_true(mca_coll_tupleq_stamps_fit(stamp, without_length),
	       "a stamp and the one without its length don't fit");
}

static void stamps_that_fit(void **state)
{
	const uint32_t stamp = mca_coll_tupleq_stamp(TUPLEQ_BCAST, 4096, 3, UINT64_MAX);
	const struct {
		const char *differs;
		uint32_t stamp;
		bool fits;
	} others[] = {
		{"length", mca_coll_tupleq_stamp(TUPLEQ_BCAST, 1, 3, UINT64_MAX), true},
		{"kind", mca_coll_tupleq_stamp(TUPLEQ_REDUCE, 4096, 3, UINT64_MAX), false},
		{"root", mca_coll_tupleq_stamp(TUPLEQ_BCAST, 4096, 2, UINT64_MAX), false},
		{"operation", mca_coll_tupleq_stamp(TUPLEQ_BCAST, 4096, 3, 0), false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		t_true(mca_coll_tupleq_stamps_fit(stamp, others[i].stamp) == others[i].fits,
		       "stamps that differ in their %s %s", others[i].differs,
		       others[i].fits ? "don't fit" : "fit");
}

static void calls(void **state)
{
	uint64_t signature = mca_coll_tupleq_call_signature(TUPLEQ_REDUCE, true, 70000, 1234567);
	uint32_t digest = mca_coll_tupleq_call_digest(signature);

	(void)state;
	t_eq(mca_coll_tupleq_call_kind(signature), TUPLEQ_REDUCE);
	t_holds(mca_coll_tupleq_call_is_delegated(signature));
	t_eq(mca_coll_tupleq_call_root(signature), 70000);
	t_eq(mca_coll_tupleq_call_bytes(signature), 1234567);
	t_holds(digest != mca_coll_tupleq_call_digest(mca_coll_tupleq_call_signature(
				  TUPLEQ_REDUCE, false, 70000, 1234567)));
	t_holds(digest != mca_coll_tupleq_call_digest(mca_coll_tupleq_call_signature(
				  TUPLEQ_REDUCE, true, 70000, 1234568)));
}

/* ---- a call that its writer overwrites while another process reads it ---- */

static struct mca_coll_tupleq_call shared;
static atomic_bool enough;

static uint64_t summary_of(uint64_t number)
{
	return number * 3;
}

static void *write_over(void *arg)
{
	for (uint64_t n = 0; !atomic_load_explicit(&enough, memory_order_relaxed);
	     n += TUPLEQ_CALLS)
		mca_coll_tupleq_call_write(&shared, n, summary_of(n));
	return arg;
}

/* Checks that a reader gets the old call, the new one or none. */
static void overwritten(void **state)
{
	enum { READS = 3000000 };
	uint64_t number = 0, summary;
	int wrong = 0, whole = 0;
	pthread_t writer;

	(void)state;
	mca_coll_tupleq_call_write(&shared, 0, summary_of(0));
	t_ok(pthread_create(&writer, NULL, write_over, NULL));
	/* Readers ask for numbers that only this place may hold. */
	for (int i = 0; i < READS || !whole; i++) {
		number = atomic_load(&shared.number) / TUPLEQ_CALLS * TUPLEQ_CALLS;
		if (!mca_coll_tupleq_call_read(&shared, number, &summary))
			continue;
		whole++;
		wrong += summary != summary_of(number);
	}
	atomic_store(&enough, true);
	pthread_join(writer, NULL);
	t_eq(wrong, 0);
}

/* ---- announcements ---- */

enum { COMMUNICATOR = 9 };

static const struct mca_coll_tupleq_announcement announcement = {
	.number = 5, .digest = 77, .hops = 3};

/* Writes the announcement into a mailbox. */
static void announce(struct mca_coll_tupleq_mailbox *mailbox)
{
	atomic_store(&mailbox->number, announcement.number);
	atomic_store(&mailbox->check_word,
		     mca_coll_tupleq_announcement_check_word(&announcement, COMMUNICATOR));
}

static void announced_once(void **state)
{
	struct mca_coll_tupleq_mailbox mailbox = {0, 0};
	struct mca_coll_tupleq_announcement got;

	(void)state;
	t_holds(!mca_coll_tupleq_mailbox_take(&mailbox, COMMUNICATOR, &got));
	announce(&mailbox);
	t_holds(mca_coll_tupleq_mailbox_take(&mailbox, COMMUNICATOR, &got));
	t_eq(got.number, announcement.number);
	t_eq(got.digest, announcement.digest);
	t_eq(got.hops, announcement.hops);
	t_holds(!mca_coll_tupleq_mailbox_take(&mailbox, COMMUNICATOR, &got));
}

static void announced_to_another(void **state)
{
	struct mca_coll_tupleq_mailbox mailbox = {0, 0};
	struct mca_coll_tupleq_announcement got;

	(void)state;
	announce(&mailbox);
	t_holds(!mca_coll_tupleq_mailbox_take(&mailbox, COMMUNICATOR - 1, &got));
}

static void half_overwritten(void **state)
{
	struct mca_coll_tupleq_mailbox mailbox = {0, 0};
	struct mca_coll_tupleq_announcement got;

	(void)state;
	announce(&mailbox);
	atomic_store(&mailbox.number, announcement.number + 1);
	t_holds(!mca_coll_tupleq_mailbox_take(&mailbox, COMMUNICATOR, &got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stamps),
		cmocka_unit_test(stamps_that_fit),
		cmocka_unit_test(calls),
		cmocka_unit_test(overwritten),
		cmocka_unit_test(announced_once),
		cmocka_unit_test(announced_to_another),
		cmocka_unit_test(half_overwritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
