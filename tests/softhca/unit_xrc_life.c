/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_xrc_life.c - how long XRC domains and target QPs live.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fixture.h"
#include "fabric/proc.h"
#include "fabric/table.h"
#include "fabric/xrc_life.h"
#include "fabric/reap.h"

/* Makes a target QP of domain `xrcd` for `slot`. */
static struct shca_qp_entry *make_target(unsigned slot, uint32_t xrcd)
{
	struct shca_qp_entry *qp = u_make(u_hca, SHCA_QP, slot, NULL);

	qp->type = IBV_QPT_XRC_RECV;
	qp->xrcd = xrcd;
	shca_openers_add(qp->openers, slot);
	shca_table_publish(qp);
	return qp;
}

struct targets {
	uint32_t xrcd, left, opened;
};

static void make_two_targets(unsigned slot, void *arg)
{
	struct targets *targets = arg;

	targets->xrcd = (uint32_t)shca_xrcd_open(&u_fab, u_hca, slot, 1, 2, O_CREAT);
	targets->left = shca_table_number(make_target(slot, targets->xrcd));
	targets->opened = shca_table_number(make_target(slot, targets->xrcd));
}

static void target_lifetime(enum shca_opt option, int64_t value, bool left_stays)
{
	struct targets *targets = mmap(NULL, sizeof(*targets), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct shca_xrcd_entry *entry;
	struct shca_qp_entry *qp;
	struct u_child c;
	uint32_t idx;

	u_start_with(option, value);
	c = u_fork(make_two_targets, targets);
	t_eq(shca_xrcd_open(&u_fab, u_hca, (unsigned)u_slot, 1, 2, O_CREAT | O_EXCL), -EINVAL);
	t_eq(shca_xrcd_open(&u_fab, u_hca, (unsigned)u_slot, 1, 3, 0), -EAGAIN);
	t_eq(shca_xrcd_open(&u_fab, u_hca, (unsigned)u_slot, 1, 2, 0), targets->xrcd);
	entry = shca_table_entry(&u_fab, &u_hca->tables[SHCA_XRCD], targets->xrcd);
	t_eq(shca_tgt_open(&u_fab, u_hca, (unsigned)u_slot, targets->xrcd + 1, targets->opened),
	     -EINVAL);
	t_holds(shca_tgt_open(&u_fab, u_hca, (unsigned)u_slot, targets->xrcd, targets->opened) >=
		0);
	u_kill(c);
	shca_reap_all(&u_fab);
	t_eq(u_findable(u_hca, SHCA_QP, targets->left), left_stays);
	qp = shca_table_find(&u_fab, u_hca, SHCA_QP, targets->opened, &idx);
	t_holds(qp != NULL);
	t_eq(shca_word_owner(atomic_load(&qp->state_word)), SHCA_NO_PROC);
	/* This process is the last opener of both: closing the QP ends the QP, and closing the
	 * domain ends the QPs that are left in it. */
	t_holds(shca_tgt_close(u_hca, qp, (unsigned)u_slot));
	t_holds(!u_findable(u_hca, SHCA_QP, targets->opened));
	t_eq(shca_tgt_open(&u_fab, u_hca, (unsigned)u_slot, targets->xrcd, targets->opened),
	     -EINVAL);
	shca_tgt_free(&u_fab, u_hca, qp);
	shca_xrcd_close(&u_fab, u_hca, entry, (unsigned)u_slot);
	t_holds(!u_findable(u_hca, SHCA_QP, targets->left));
	t_eq(atomic_load(&u_hca->tables[SHCA_QP].count), 0);
	t_eq(atomic_load(&u_hca->tables[SHCA_XRCD].count), 0);
	munmap(targets, sizeof(*targets));
}

static void target_lives_with_its_domain(void **state)
{
	(void)state;
	target_lifetime(SHCA_O_TGT_LIFETIME, SHCA_TGT_DOMAIN, true);
}

static void target_lives_while_open(void **state)
{
	(void)state;
	target_lifetime(SHCA_O_TGT_LIFETIME, SHCA_TGT_OPEN, false);
}

static void open_domain(unsigned slot, void *arg)
{
	*(uint32_t *)arg = (uint32_t)shca_xrcd_open(&u_fab, u_hca, slot, 5, 6, O_CREAT);
}

static void leave_many_targets(unsigned slot, void *arg)
{
	uint32_t *xrcd = arg;
	unsigned i;

	*xrcd = (uint32_t)shca_xrcd_open(&u_fab, u_hca, slot, 5, 6, O_CREAT);
	for (i = 0; i < 200; i++)
		make_target(slot, *xrcd);
}

/* Checks that all target QPs go when the last process that has the domain open closes it or
 * dies. */
static void last_one_out_ends_the_domain(void **state)
{
	uint32_t *xrcd =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct u_child maker, holder;
	unsigned round;

	(void)state;
	for (round = 0; round < 2; round++) {
		maker = u_fork(leave_many_targets, xrcd);
		holder = u_fork(open_domain, xrcd + 1);
		t_eq(xrcd[0], xrcd[1]);
		if (round)
			shca_xrcd_open(&u_fab, u_hca, (unsigned)u_slot, 5, 6, 0);
		u_kill(maker);
		shca_reap(&u_fab, maker.slot);
		t_eq(atomic_load(&u_hca->tables[SHCA_QP].count), 200);
		u_kill(holder);
		shca_reap(&u_fab, holder.slot);
		if (round) {
			t_eq(atomic_load(&u_hca->tables[SHCA_QP].count), 200);
			shca_xrcd_close(&u_fab, u_hca,
					shca_table_entry(&u_fab, &u_hca->tables[SHCA_XRCD], *xrcd),
					(unsigned)u_slot);
		}
		t_eq(atomic_load(&u_hca->tables[SHCA_QP].count), 0);
		t_eq(atomic_load(&u_hca->tables[SHCA_XRCD].count), 0);
	}
	munmap(xrcd, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(target_lives_with_its_domain, u_stop),
		cmocka_unit_test_teardown(target_lives_while_open, u_stop),
		IN_FABRIC(last_one_out_ends_the_domain),
	};

	alarm(120); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
