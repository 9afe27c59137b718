/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * series_retain_living() on an object in place of a communicator: of threads that retain and
 * release the object, exactly one destroys it, and none retains it after that. Calls nothing of
 * MPI but MPI_Init and MPI_Finalize.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"
#include "pml/series.h"

enum { RETAINERS = 3, ROUNDS = 2000, TIMES = 20 };

static opal_object_t object;
static pthread_barrier_t barrier;
static atomic_int destroyed; /* times that the last reference went, in this round */

static ompi_communicator_t *communicator(void)
{
	return (ompi_communicator_t *)&object;
}

static void release(void)
{
	if (opal_atomic_add_fetch_32(&object.obj_reference_count, -1) == 0)
		atomic_fetch_add(&destroyed, 1);
}

static void *retain_and_release(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&barrier);
		for (int n = 0; n < TIMES && series_retain_living(communicator()); n++)
			release();
		pthread_barrier_wait(&barrier);
	}
	return arg;
}

static void alone(void)
{
	t_begin("retain: a communicator that lives");
	object.obj_reference_count = 1;
	t_true(series_retain_living(communicator()), "isn't retained");
	t_true(object.obj_reference_count == 2, "has %d references", object.obj_reference_count);
	t_end();
	t_begin("retain: one that is being destroyed");
	object.obj_reference_count = 0;
	t_true(!series_retain_living(communicator()), "is retained");
	t_true(object.obj_reference_count == 0, "has %d references", object.obj_reference_count);
	t_end();
}

static void among_threads(void)
{
	pthread_t thread[RETAINERS];

	t_begin("retain: while another thread destroys it");
	pthread_barrier_init(&barrier, NULL, RETAINERS + 1);
	for (int i = 0; i < RETAINERS; i++)
		t_true(!pthread_create(&thread[i], NULL, retain_and_release, NULL), "no thread");
	for (int i = 0; i < ROUNDS; i++) {
		object.obj_reference_count = 1;
		atomic_store(&destroyed, 0);
		pthread_barrier_wait(&barrier);
		release();
		pthread_barrier_wait(&barrier);
		t_true(atomic_load(&destroyed) == 1 && object.obj_reference_count == 0,
		       "round %d: destroyed %d times, %d references", i, atomic_load(&destroyed),
		       object.obj_reference_count);
	}
	for (int i = 0; i < RETAINERS; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&barrier);
	t_end();
}

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 1);
	alone();
	among_threads();
	return t_finish();
}
