/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_actors.c - the turn of a virtual clock is not lost with a process that is killed at any
 * point of giving it.
 */
#define _GNU_SOURCE 1
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"
#include "fabric/actors.h"
#include "fabric/proc.h"
#include "fabric/reap.h"

#define DEADLINE 20 /* seconds for all tests */

static int start(void **state)
{
	(void)state;
	u_start_with(SHCA_O_CLOCK, SHCA_CLOCK_VIRTUAL);
	return 0;
}

static struct shca_clock *clock_here(void)
{
	return shca_fabric_clock(&u_fab);
}

/* Makes a thread of that process an actor that is due at a time. */
static uint32_t make_actor(unsigned slot, uint64_t due)
{
	uint32_t actor = shca_actor_make(&u_fab, slot, getpid(), SHCA_ORDER(slot, 0));

	t_holds(actor != SHCA_NO_ACTOR);
	shca_actors_lock(&u_fab);
	atomic_store(&clock_here()->actors[actor].state, SHCA_ACTOR_READY);
	shca_actor_sooner(clock_here(), actor, due);
	shca_actors_unlock(&u_fab);
	return actor;
}

/* Waits for the turn of an actor, as the library does. */
static void *await_turn(void *arg)
{
	struct shca_actor *actor = arg;

	while (!atomic_load(&actor->granted))
		syscall(SYS_futex, &actor->granted, FUTEX_WAIT, 0, NULL, NULL, 0);
	return NULL;
}

/* Kills a process at a point of giving the turn to an actor, amid which it holds the lock. */
static void killed_at(void (*point)(uint32_t actor), uint32_t actor)
{
	pid_t pid = fork();
	int status;

	t_holds(pid >= 0);
	if (!pid) {
		shca_actors_lock(&u_fab);
		point(actor);
		raise(SIGKILL);
	}
	t_eq(waitpid(pid, &status, 0), pid);
	t_holds(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Checks that a waiting thread gets the turn after the giver was killed at that point, once another
 * process has taken and released the lock. */
static void given_again_after(void (*point)(uint32_t actor))
{
	uint32_t actor = make_actor((unsigned)u_slot, atomic_load(&clock_here()->now));
	pthread_t waiter;

	t_eq(pthread_create(&waiter, NULL, await_turn, &clock_here()->actors[actor]), 0);
	killed_at(point, actor);
	shca_actors_lock(&u_fab);
	shca_actors_unlock(&u_fab);
	t_eq(pthread_join(waiter, NULL), 0);
	t_eq(atomic_load(&clock_here()->holder), actor + 1);
}

static void before_granted(uint32_t actor)
{
	atomic_store(&clock_here()->holder, actor + 1);
}

static void before_release(uint32_t actor)
{
	shca_actor_grant(&u_fab, actor);
}

static void a_turn_without_grant_is_granted(void **state)
{
	(void)state;
	given_again_after(before_granted);
}

static void a_grant_without_wake_up_wakes(void **state)
{
	(void)state;
	given_again_after(before_release);
}

/* Makes an actor that is due first, and takes the turn and, as if amid a step, perhaps the lock. */
static void take_turn(unsigned slot, void *arg)
{
	const bool *locks = arg;
	uint32_t actor = make_actor(slot, atomic_load(&clock_here()->now));

	shca_actors_lock(&u_fab);
	shca_actors_pass(&u_fab);
	shca_actor_take(clock_here(), actor);
	shca_actors_unlock(&u_fab);
	if (*locks)
		shca_actors_lock(&u_fab);
}

/* Checks that the reaper of a process that was killed with the turn passes the turn on. */
static void passed_on_by_reaper(bool locks)
{
	uint32_t actor = make_actor((unsigned)u_slot, atomic_load(&clock_here()->now) + 1);
	struct u_child child = u_fork(take_turn, &locks);
	pthread_t waiter;

	t_holds(atomic_load(&clock_here()->holder));
	t_holds(atomic_load(&clock_here()->holder) != actor + 1);
	u_kill(child);
	t_eq(pthread_create(&waiter, NULL, await_turn, &clock_here()->actors[actor]), 0);
	shca_reap(&u_fab, child.slot);
	t_eq(pthread_join(waiter, NULL), 0);
	t_eq(atomic_load(&clock_here()->holder), actor + 1);
}

static void a_turn_of_the_dead_is_passed_on(void **state)
{
	(void)state;
	passed_on_by_reaper(false);
}

static void a_turn_and_lock_of_the_dead_are_passed_on(void **state)
{
	(void)state;
	passed_on_by_reaper(true);
}

#define WITH_CLOCK(test) cmocka_unit_test_setup_teardown(test, start, u_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_CLOCK(a_turn_without_grant_is_granted),
		WITH_CLOCK(a_grant_without_wake_up_wakes),
		WITH_CLOCK(a_turn_of_the_dead_is_passed_on),
		WITH_CLOCK(a_turn_and_lock_of_the_dead_are_passed_on),
	};

	alarm(DEADLINE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
