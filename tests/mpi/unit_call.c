/* SPDX-License-Identifier: BSD-3-Clause */
/* The records by which processes announce their operations to coll/tupleq: stamps and calls. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "coll/call.h"

static int failed;

static void check(const char *name, int ok)
{
	printf("%sok call: %s\n", ok ? "" : "not ", name);
	failed |= !ok;
}

static void stamps(void)
{
	uint32_t stamp = mca_coll_tupleq_stamp(TUPLEQ_BCAST, 4096, 3, UINT64_MAX);

	check("a stamp has the length", mca_coll_tupleq_stamp_bytes(stamp) == 4096);
	check("a stamp is never 0", mca_coll_tupleq_stamp(TUPLEQ_BARRIER, 0, 0, 0) != 0);
	check("a void one has none",
	      mca_coll_tupleq_stamp_bytes(mca_coll_tupleq_stamp_void(stamp)) == 0);
	check("lengths alone may differ",
	      mca_coll_tupleq_stamps_fit(stamp,
					 mca_coll_tupleq_stamp(TUPLEQ_BCAST, 1, 3, UINT64_MAX)) &&
		      mca_coll_tupleq_stamps_fit(stamp, mca_coll_tupleq_stamp_void(stamp)));
	check("but not the kind",
	      !mca_coll_tupleq_stamps_fit(
		      stamp, mca_coll_tupleq_stamp(TUPLEQ_REDUCE, 4096, 3, UINT64_MAX)));
	check("nor the root",
	      !mca_coll_tupleq_stamps_fit(
		      stamp, mca_coll_tupleq_stamp(TUPLEQ_BCAST, 4096, 2, UINT64_MAX)));
	check("nor the operation",
	      !mca_coll_tupleq_stamps_fit(stamp, mca_coll_tupleq_stamp(TUPLEQ_BCAST, 4096, 3, 0)));
}

static void calls(void)
{
	uint64_t what = mca_coll_tupleq_call_signature(TUPLEQ_REDUCE, true, 70000, 1234567);

	check("a call has all that it is", mca_coll_tupleq_call_kind(what) == TUPLEQ_REDUCE &&
						   mca_coll_tupleq_call_is_delegated(what) &&
						   mca_coll_tupleq_call_root(what) == 70000 &&
						   mca_coll_tupleq_call_bytes(what) == 1234567);
	check("other calls have other digests",
	      mca_coll_tupleq_call_digest(what) !=
			      mca_coll_tupleq_call_digest(mca_coll_tupleq_call_signature(
				      TUPLEQ_REDUCE, false, 70000, 1234567)) &&
		      mca_coll_tupleq_call_digest(what) !=
			      mca_coll_tupleq_call_digest(mca_coll_tupleq_call_signature(
				      TUPLEQ_REDUCE, true, 70000, 1234568)));
}

/* ---- a call that its writer overwrites while another process reads it ---- */

static struct mca_coll_tupleq_call shared;
static atomic_bool enough;

static uint64_t what_of(uint64_t number)
{
	return number * 3;
}

static void *write_over(void *arg)
{
	for (uint64_t n = 0; !atomic_load_explicit(&enough, memory_order_relaxed);
	     n += TUPLEQ_CALLS)
		mca_coll_tupleq_call_write(&shared, n, what_of(n));
	return arg;
}

static void overwritten(void)
{
	enum { READS = 3000000 };
	uint64_t number = 0, what;
	int wrong = 0, whole = 0;
	pthread_t writer;

	mca_coll_tupleq_call_write(&shared, 0, what_of(0));
	if (pthread_create(&writer, NULL, write_over, NULL)) {
		check("there is a second thread", 0);
		return;
	}
	/* Readers ask for numbers that only this place may hold. */
	for (int i = 0; i < READS || !whole; i++) {
		number = atomic_load(&shared.number) / TUPLEQ_CALLS * TUPLEQ_CALLS;
		if (!mca_coll_tupleq_call_read(&shared, number, &what))
			continue;
		whole++;
		wrong += what != what_of(number);
	}
	atomic_store(&enough, true);
	pthread_join(writer, NULL);
	check("a call that is written over is the old one, the new one or none", !wrong);
}

static void announcements(void)
{
	const struct mca_coll_tupleq_announcement announcement = {
		.number = 5, .digest = 77, .hops = 3};
	struct mca_coll_tupleq_mailbox mailbox = {0, 0};
	struct mca_coll_tupleq_announcement got;

	check("nothing is announced at first", !mca_coll_tupleq_mailbox_take(&mailbox, 9, &got));
	atomic_store(&mailbox.number, announcement.number);
	atomic_store(&mailbox.check_word,
		     mca_coll_tupleq_announcement_check_word(&announcement, 9));
	check("an announcement comes whole", mca_coll_tupleq_mailbox_take(&mailbox, 9, &got) &&
						     got.number == 5 && got.digest == 77 &&
						     got.hops == 3);
	check("and once", !mca_coll_tupleq_mailbox_take(&mailbox, 9, &got));
	atomic_store(&mailbox.check_word,
		     mca_coll_tupleq_announcement_check_word(&announcement, 9));
	check("that of another communicator is none",
	      !mca_coll_tupleq_mailbox_take(&mailbox, 8, &got));
	atomic_store(&mailbox.check_word,
		     mca_coll_tupleq_announcement_check_word(&announcement, 9));
	atomic_store(&mailbox.number, announcement.number + 1);
	check("that of which one half was written over is none",
	      !mca_coll_tupleq_mailbox_take(&mailbox, 9, &got));
}

int main(void)
{
	stamps();
	calls();
	overwritten();
	announcements();
	return failed;
}
