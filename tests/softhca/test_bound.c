/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bound.c - regions to which memory windows are bound: they can't be changed or ended, also if
 * the binding comes at the same time.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "windows.h"

#define LEN      T_REGION
#define PART     T_PART
#define BINDABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

/* Checks that a region stays while a window is bound to it. */
static void test_busy(void **state)
{
	struct t_place place = t_place(dev, BINDABLE);
	struct ibv_mw *mw = t_mw(dev, IBV_MW_TYPE_2);
	uint32_t key = ibv_inc_rkey(mw->rkey);
	void *nowhere = mmap(NULL, PART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	t_true(nowhere != MAP_FAILED, "mmap: %s", strerror(errno));
	t_eq(t_bind_2(place.pair.b, mw, key, t_part(&place.region, IBV_ACCESS_REMOTE_READ)),
	     IBV_WC_SUCCESS);
	t_rc(ibv_dereg_mr(place.region.mr), EBUSY);
	errno = 0;
	t_eq(ibv_rereg_mr(place.region.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, BINDABLE),
	     IBV_REREG_MR_ERR_CMD);
	t_eq(errno, EBUSY);
	/* The new memory is looked at first. */
	t_eq(ibv_rereg_mr(place.region.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, nowhere, PART, 0),
	     IBV_REREG_MR_ERR_CMD);
	t_eq(errno, EFAULT);
	t_eq(t_invalidate(place.pair.b, key), IBV_WC_SUCCESS);
	t_eq(ibv_rereg_mr(place.region.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, BINDABLE), 0);
	t_ok(ibv_dealloc_mw(mw));
	munmap(nowhere, PART);
	t_place_free(&place);
}

#define RACES 400

/* A bind in a thread of its own. */
struct race {
	struct t_place *place;
	struct ibv_mw *mw;
	uint32_t key;
	struct ibv_mr mr; /* a copy: the region's object may end while the thread posts */
	pthread_barrier_t begin;
	enum ibv_wc_status status;
};

static void *bind_at_once(void *arg)
{
	struct race *race = arg;
	struct ibv_mw_bind_info part = t_part(&race->place->region, IBV_ACCESS_REMOTE_READ);

	part.mr = &race->mr;
	pthread_barrier_wait(&race->begin);
	race->status = t_bind_2(race->place->pair.b, race->mw, race->key, part);
	return NULL;
}

/* Binds a window to the end of a region while that is cut off: one of the two fails. */
static void race_once(struct race *race)
{
	struct t_buf *region = &race->place->region;
	const int change = IBV_REREG_MR_CHANGE_TRANSLATION;
	pthread_t thread;
	int rc;

	race->key = ibv_inc_rkey(race->key);
	race->mr = *region->mr;
	t_ok(pthread_create(&thread, NULL, bind_at_once, race));
	pthread_barrier_wait(&race->begin);
	rc = ibv_rereg_mr(region->mr, change, NULL, region->addr, PART, 0);
	t_ok(pthread_join(thread, NULL));
	t_true((rc == 0) != (race->status == IBV_WC_SUCCESS), "%d, and the bind has status %d", rc,
	       race->status);
	if (race->status == IBV_WC_SUCCESS)
		t_eq(t_invalidate(race->place->pair.b, race->key), IBV_WC_SUCCESS);
	else
		t_mend(&race->place->pair);
	t_ok(ibv_rereg_mr(region->mr, change, NULL, region->addr, LEN, 0));
}

/* Deregisters a region while a window is bound to it: one of the two fails. */
static void race_of_end(struct race *race)
{
	struct t_buf *region = &race->place->region;
	pthread_t thread;
	int rc;

	race->key = ibv_inc_rkey(race->key);
	race->mr = *region->mr;
	t_ok(pthread_create(&thread, NULL, bind_at_once, race));
	pthread_barrier_wait(&race->begin);
	rc = ibv_dereg_mr(region->mr);
	t_ok(pthread_join(thread, NULL));
	t_true((rc == 0) != (race->status == IBV_WC_SUCCESS), "%d, and the bind has status %d", rc,
	       race->status);
	if (!rc) {
		region->mr = ibv_reg_mr(dev->pd, region->addr, LEN, BINDABLE);
		t_true(region->mr, "ibv_reg_mr: %s", strerror(errno));
		t_mend(&race->place->pair);
		return;
	}
	t_eq(rc, EBUSY);
	t_eq(t_invalidate(race->place->pair.b, race->key), IBV_WC_SUCCESS);
}

static void race_often(void (*once)(struct race *race))
{
	struct t_place place = t_place(dev, BINDABLE);
	struct race race = {.place = &place, .mw = t_mw(dev, IBV_MW_TYPE_2)};

	race.key = race.mw->rkey;
	t_ok(pthread_barrier_init(&race.begin, NULL, 2));
	for (int i = 0; i < RACES; i++)
		once(&race);
	pthread_barrier_destroy(&race.begin);
	t_ok(ibv_dealloc_mw(race.mw));
	t_place_free(&place);
}

static void test_busy_at_once(void **state)
{
	(void)state;
	race_often(race_once);
}

static void test_end_at_once(void **state)
{
	(void)state;
	race_often(race_of_end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_busy_at_once),
		cmocka_unit_test(test_end_at_once),
	};

	return cmocka_run_group_tests_name("bound", tests, setup, t_teardown);
}
