/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn.c - a thread's clock, and its turn: joining, sync points, waiting, the real world.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "fabric/cancel.h"
#include "fabric/cycles.h"
#include "fabric/options_parse.h"

/* Steps in which the holder lets real time go by while all others only look (ns). */
/* Traps of rdtsc to learn what one takes. */
#define TRAP_SAMPLES 4
#define TRAPS        16
#define PACE_NS      10000000u

struct shca_clock *shca_clk;
void (*shca_clock_adapter)(void);
void (*shca_clock_trap)(void);

static struct {
	struct shca_fabric *fabric;
	unsigned slot;
	uint32_t order;           /* of its adapters and threads */
	_Atomic uint32_t threads; /* that ever joined */
	unsigned life;            /* counts attaches: which threads are joined to this one */
	uint64_t seed;
	uint64_t price[SHCA_CALLS];
	bool trap;      /* rdtsc is to be virtual */
	int64_t factor; /* parts of SHCA_FACTOR_ONE */
} here = {.life = 1};

/* The library is there when the program starts: its thread-local data can be found without a call.
 */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	uint32_t actor;   /* + 1 */
	unsigned life;    /* here.life when it joined */
	bool heir;        /* made by a thread with a clock: it joins with whatever it does first */
	uint32_t depth;   /* of calls */
	uint32_t draws;   /* of jitter */
	uint64_t clock;   /* ns */
	uint64_t trap_ns; /* what is counted for a trap of rdtsc by itself */
} self;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* for its destructor */

uint64_t shca_clock_mine(void)
{
	return self.clock;
}

/* ---------------------------------------------------------------- attaching */

/* Launchers number the processes of a job: the only number of a process that is the same in each
 * run. */
static uint32_t rank_of(unsigned node, unsigned slot)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
					    "SLURM_PROCID"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const char *s = getenv(names[i]);

		if (s && *s >= '0' && *s <= '9')
			return (uint32_t)strtoul(s, NULL, 10);
	}
	return node << 8 | slot;
}

static void read_options(const struct shca_fabric *f)
{
	static const enum shca_opt prices[SHCA_CALLS] = {
		[SHCA_CALL_POST] = SHCA_O_PRICE_POST, [SHCA_CALL_RECV] = SHCA_O_PRICE_RECV,
		[SHCA_CALL_POLL] = SHCA_O_PRICE_POLL, [SHCA_CALL_CQE] = SHCA_O_PRICE_CQE,
		[SHCA_CALL_ARM] = SHCA_O_PRICE_ARM,   [SHCA_CALL_EVENT] = SHCA_O_PRICE_EVENT,
		[SHCA_CALL_REG] = SHCA_O_PRICE_REG,   [SHCA_CALL_PAGE] = SHCA_O_PRICE_PAGE,
		[SHCA_CALL_VERB] = SHCA_O_PRICE_CALL, [SHCA_CALL_TIME] = SHCA_O_PRICE_TIME,
		[SHCA_CALL_WAIT] = SHCA_O_PRICE_WAIT,
	};

	for (unsigned i = SHCA_CALL_POST; i < SHCA_CALLS; i++)
		here.price[i] = (uint64_t)shca_opt(f, prices[i]);
	here.factor = shca_opt(f, SHCA_O_CLOCK_CPU);
	here.trap = shca_opt(f, SHCA_O_CLOCK_TSC) == SHCA_TSC_TRAP;
	here.seed = (uint64_t)shca_opt(f, SHCA_O_CLOCK_SEED);
}

void shca_clock_attach(struct shca_fabric *f, unsigned slot, unsigned node)
{
	if (!shca_clock_of(f))
		return;
	here.fabric = f;
	here.slot = slot;
	here.order = rank_of(node, slot) << 8;
	atomic_store(&here.threads, 0);
	read_options(f);
	shca_actor_adapter(f, slot, here.order);
	shca_clock_follow(&f->hdr->clock);
	shca_clk = &f->hdr->clock;
}

void shca_clock_detach(void)
{
	struct shca_fabric *f = here.fabric;

	if (!shca_clk)
		return;
	here.life++;
	self.actor = 0;
	shca_clk = NULL;
	shca_clock_follow(NULL);
	shca_actors_gone(f, here.slot);
}

void shca_clock_reset(void)
{
	here.life++;
	self.actor = self.depth = 0;
	shca_clk = NULL;
	shca_clock_follow(NULL);
}

/* ---------------------------------------------------------------- the turn */

static bool joined(void)
{
	return self.actor && self.life == here.life;
}

/* The next step of a thread that has the turn, but may not be the first. */
enum verdict {
	MINE,    /* go on */
	ADAPTER, /* execute what is due in this process's adapters first */
	WORLD,   /* the real world is busy */
	PACE,    /* time would pass because threads look for something that nobody knows of */
	OTHERS,  /* give the turn to the first */
};

/* Returns true if nothing is due but looks of spinning threads. */
static bool only_looks(bool *awaited)
{
	uint32_t high = atomic_load(&shca_clk->high);

	*awaited = false;
	for (uint32_t i = 0; i < high; i++) {
		uint32_t state =
			atomic_load_explicit(&shca_clk->actors[i].state, memory_order_relaxed);

		if (atomic_load_explicit(&shca_clk->due[i], memory_order_relaxed) != SHCA_NEVER &&
		    !atomic_load_explicit(&shca_clk->actors[i].looks, memory_order_relaxed))
			return false;
		*awaited |= state == SHCA_ACTOR_OUT || state == SHCA_ACTOR_COMPUTES;
	}
	return true;
}

/* Returns how much real time has to go by before the time may be `due`. */
static uint64_t to_pace(uint64_t due)
{
	uint64_t now = atomic_load(&shca_clk->now), real = shca_real_now();

	if (shca_clk->paced_time != now) {
		shca_clk->paced_time = now;
		shca_clk->paced_since = real;
	}
	return due - now > real - shca_clk->paced_since ? due - now - (real - shca_clk->paced_since)
							: 0;
}

/* Returns the step that comes before the time may be `due`. If only looks are due, the threads that
 * look may wait for the real world, for a thread that is out in it, or for one that computes. */
static enum verdict may_pass(uint64_t due, uint64_t *ns)
{
	bool awaited;

	if (due <= atomic_load(&shca_clk->now) || !only_looks(&awaited))
		return MINE;
	if (shca_clk->quiet_at != atomic_load(&shca_clk->now)) {
		atomic_store(&shca_clk->reached, 1);
		return WORLD;
	}
	*ns = awaited ? to_pace(due) : 0;
	return *ns ? PACE : MINE;
}

/* Holding the lock, and the turn. */
static enum verdict decide(uint32_t actor, uint64_t *ns)
{
	uint32_t first = shca_actors_first(shca_clk);
	enum verdict v;

	if (first != actor && !(first == here.slot && actor >= SHCA_MAX_ADAPTERS))
		return OTHERS;
	/* Also if no time passes: what the first looks at must not depend on how far others got. */
	if (atomic_load(&shca_clk->stirred))
		return WORLD;
	v = may_pass(atomic_load(&shca_clk->due[first]), ns);
	return v == MINE && first != actor ? ADAPTER : v;
}

/* Executes the work of this process's adapters: cheaper than to wake their thread for it. */
static void run_adapter(void)
{
	uint32_t granted = here.slot;

	shca_actor_take(shca_clk, granted);
	atomic_fetch_add_explicit(&shca_clk->own, 1, memory_order_relaxed);
	shca_clock_unlock(here.fabric);
	shca_clock_adapter();
	shca_clock_lock(here.fabric);
}

/* Lets as much real time go by as virtual time will, or less if something happens. */
static void pace(uint64_t ns)
{
	struct timespec t = {0, (long)(ns < PACE_NS ? ns : PACE_NS)};

	atomic_store(&shca_clk->pacing, 1);
	atomic_store(&shca_clk->idle, 1);
	atomic_fetch_add_explicit(&shca_clk->paced, 1, memory_order_relaxed);
	shca_clock_unlock(here.fabric);
	syscall(SYS_futex, &shca_clk->pacing, FUTEX_WAIT, 1, &t, NULL, 0);
	shca_clock_lock(here.fabric);
	atomic_store(&shca_clk->pacing, 0);
	atomic_store(&shca_clk->idle, 0);
}

static void settle(void)
{
	bool all = atomic_load(&shca_clk->reached);

	atomic_store(&shca_clk->stirred, 0);
	shca_clk->world_asker = here.slot;
	atomic_store(&shca_clk->idle, 1);
	atomic_fetch_add_explicit(&shca_clk->waits_for_world, 1, memory_order_relaxed);
	shca_clock_unlock(here.fabric);
	shca_clock_settle(shca_clk);
	shca_clock_lock(here.fabric);
	atomic_store(&shca_clk->idle, 0);
	if (all && !atomic_load(&shca_clk->stirred))
		shca_clk->quiet_at = atomic_load(&shca_clk->now);
	shca_actors_look(shca_clk, SHCA_NO_PROC, SHCA_WATCHES_WORLD);
}

bool shca_clock_settle_first(void)
{
	bool stirred;

	if (!joined())
		return false;
	shca_clock_lock(here.fabric);
	stirred = atomic_load(&shca_clk->stirred) && atomic_load(&shca_clk->holder) == self.actor;
	if (stirred) {
		/* This thread looks anyway, and is not to be due while it has the turn. */
		atomic_store(&shca_clk->actors[self.actor - 1].watches, SHCA_WATCHES_NOTHING);
		settle();
	}
	shca_clock_unlock(here.fabric);
	return stirred;
}

bool shca_turn_step(uint32_t actor)
{
	uint64_t ns = 0;
	bool mine = false;

	shca_clock_lock(here.fabric);
	if (!atomic_load(&shca_clk->holder) && atomic_load(&shca_clk->due[actor]) != SHCA_NEVER)
		atomic_store(&shca_clk->holder, actor + 1);
	while (!mine && atomic_load(&shca_clk->holder) == actor + 1) {
		switch (decide(actor, &ns)) {
		case MINE:
			shca_actor_take(shca_clk, actor);
			mine = true;
			break;
		case ADAPTER:
			run_adapter();
			break;
		case WORLD:
			settle();
			break;
		case PACE:
			pace(ns);
			break;
		case OTHERS:
			shca_actors_pass(here.fabric);
			break;
		}
	}
	shca_clock_unlock(here.fabric);
	return mine;
}

static void want(uint32_t actor, enum shca_actor_state state, uint64_t when)
{
	atomic_store(&shca_clk->actors[actor].state, state);
	shca_actor_sooner(shca_clk, actor, when);
}

/* Makes a thread due again from which the monitor took the turn, because the thread was stopped or
 * asleep when the turn came (watch.c). */
static void want_again(uint32_t actor)
{
	uint64_t now;

	shca_clock_lock(here.fabric);
	now = atomic_load(&shca_clk->now);
	want(actor, SHCA_ACTOR_READY, self.clock > now ? self.clock : now);
	shca_clock_unlock(here.fabric);
}

/* Gives the turn to whoever is first; comes back with it, when that is this thread again. */
static void await(uint32_t actor)
{
	struct shca_actor *a = &shca_clk->actors[actor];
	int cancel = shca_cancel_hold();

	while (!shca_turn_step(actor)) {
		if (atomic_load(&a->state) == SHCA_ACTOR_OUT) {
			want_again(actor);
			continue;
		}
		while (!atomic_load(&a->granted))
			syscall(SYS_futex, &a->granted, FUTEX_WAIT, 0, NULL, NULL, 0);
		atomic_store(&a->granted, 0);
	}
	shca_cancel_restore(cancel);
	self.clock = atomic_load(&shca_clk->now);
	atomic_store_explicit(&a->clock, self.clock, memory_order_relaxed);
	shca_charge_stale();
}

static void thread_ends(void *arg)
{
	(void)arg;
	/* The rest of the thread's life is inside softhca. */
	self.depth++;
	if (self.actor && self.life == here.life && shca_clk)
		shca_actor_end(here.fabric, self.actor - 1);
	self.actor = 0;
}

static void make_key(void)
{
	pthread_key_create(&key, thread_ends);
}

static void charge(void)
{
	uint64_t cpu;

	if (!here.factor)
		return;
	cpu = shca_charge_end();
	shca_spin_gap(cpu);
	self.clock += here.factor == SHCA_FACTOR_ONE
			      ? cpu
			      : (uint64_t)((unsigned __int128)cpu * (uint64_t)here.factor /
					   SHCA_FACTOR_ONE);
	shca_add(&shca_clk->actors[self.actor - 1].cpu, cpu);
}

/* Makes the thread trap, and measures what the clock counts for a trap alone. */
static void begin_to_trap(void)
{
	uint64_t clock = self.clock, least = SHCA_NEVER;
	uint32_t depth = self.depth;

	if (!shca_clock_trap)
		return;
	shca_charge_without_tsc();
	shca_clock_trap();
	self.depth = 0;
	self.trap_ns = 0;
	for (int i = 0; here.factor && i < TRAP_SAMPLES; i++) {
		shca_charge_begin();
		self.clock = 0;
		for (int k = 0; k < TRAPS; k++)
			(void)shca_cycles();
		charge();
		least = self.clock / TRAPS < least ? self.clock / TRAPS : least;
	}
	if (least != SHCA_NEVER && least > here.price[SHCA_CALL_TIME])
		self.trap_ns = least - here.price[SHCA_CALL_TIME];
	self.depth = depth;
	self.clock = clock;
}

static void join(void)
{
	uint32_t nr = atomic_fetch_add(&here.threads, 1) & 0xff, actor;

	pthread_once(&key_once, make_key);
	actor = shca_actor_make(here.fabric, here.slot, (pid_t)syscall(SYS_gettid),
				here.order | nr);
	if (actor == SHCA_NO_ACTOR)
		return;
	self.actor = actor + 1;
	self.life = here.life;
	self.draws = 0;
	pthread_setspecific(key, &self);
	shca_affinity_pin(shca_clk->cpu);
	self.clock = atomic_load(&shca_clk->now);
	shca_clock_disturb(shca_clk, true);
	want(actor, SHCA_ACTOR_READY, self.clock);
	await(actor);
	if (here.trap)
		begin_to_trap();
}

/* A sync point: goes on if this thread's clock is the smallest, else when it is. */
static void sync_here(void)
{
	uint32_t actor = self.actor - 1;
	struct shca_actor *a = &shca_clk->actors[actor];

	atomic_store_explicit(&a->clock, self.clock, memory_order_relaxed);
	if (atomic_load_explicit(&shca_clk->holder, memory_order_relaxed) == actor + 1 &&
	    self.clock < atomic_load(&shca_clk->next)) {
		atomic_store_explicit(&shca_clk->now, self.clock, memory_order_relaxed);
	} else {
		want(actor, SHCA_ACTOR_READY, self.clock);
		await(actor);
	}
}

/* One that is an event of the program: the same in each run. */
static void note_sync(void)
{
	atomic_fetch_add_explicit(&shca_clk->syncs, 1, memory_order_relaxed);
	shca_clock_hash(shca_clk, (self.clock - shca_clk->zero) << 8 ^
					  shca_clk->actors[self.actor - 1].order);
}

/* ---------------------------------------------------------------- calls */

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Half to one and a half times the price, and one in 64 times much more: a thread that is held up.
 */
static uint64_t jitter(uint64_t price)
{
	uint64_t d = mix(mix(here.seed) ^ (uint64_t)shca_clk->actors[self.actor - 1].order << 32 ^
			 self.draws++);

	price = price / 2 + price * (d & 1023) / 1024;
	return (d >> 10) % 64 ? price : price * (2 + (d >> 16) % 64);
}

void shca_clock_pay(enum shca_call what, uint64_t n)
{
	uint64_t price = here.price[what] * n;

	if (self.actor)
		self.clock += here.seed && price ? jitter(price) : price;
}

/* Returns true if the thread was in its program, and has a clock. */
static bool begin(enum shca_call what)
{
	if (self.depth++)
		return false;
	if (joined())
		charge();
	else
		join();
	if (!joined()) /* no actor is left: it runs as it likes */
		return false;
	atomic_store_explicit(&shca_clk->actors[self.actor - 1].where, what, memory_order_relaxed);
	atomic_store_explicit(&shca_clk->actors[self.actor - 1].watches, SHCA_WATCHES_NOTHING,
			      memory_order_relaxed);
	return true;
}

void shca_clock_enter(enum shca_call what, uint64_t n)
{
	if (!begin(what))
		return;
	shca_clock_pay(what, n);
	sync_here();
	note_sync();
}

void shca_clock_enter_free(void)
{
	if (begin(SHCA_CALL_WAIT))
		sync_here();
}

void shca_clock_leave(void)
{
	if (--self.depth)
		return;
	if (joined() && here.factor)
		shca_charge_begin();
}

void shca_clock_wait(uint64_t until, unsigned also)
{
	uint32_t actor = self.actor - 1;
	struct shca_actor *a = &shca_clk->actors[actor];

	if (!joined())
		return;
	atomic_store(&a->on_event, !!(also & SHCA_ALSO_EVENTS));
	want(actor, SHCA_ACTOR_WAITS, until);
	await(actor);
	atomic_store(&a->on_event, 0);
}

void shca_clock_watch(enum shca_watching what)
{
	if (joined())
		atomic_store(&shca_clk->actors[self.actor - 1].watches, what);
}

uint32_t shca_clock_actor(void)
{
	return joined() ? self.actor - 1 : SHCA_NO_ACTOR;
}

void shca_clock_look(uint32_t actor)
{
	shca_clock_lock(here.fabric);
	shca_actor_look(shca_clk, actor);
	if (!atomic_load(&shca_clk->holder))
		shca_actors_pass(here.fabric);
	shca_clock_unlock(here.fabric);
}

void shca_clock_wake_process(void)
{
	/* The locks below are taken and released here, which is nobody's business. */
	if (self.depth++ == 0) {
		shca_clock_lock(here.fabric);
		shca_actors_look(shca_clk, here.slot, SHCA_WATCHES_PROCESS);
		if (!atomic_load(&shca_clk->holder))
			shca_actors_pass(here.fabric);
		shca_clock_unlock(here.fabric);
	}
	self.depth--;
}

void shca_clock_await_event(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (!shca_clk || !joined() || (fcntl(fd, F_GETFL) & O_NONBLOCK))
		return;
	while (poll(&p, 1, 0) == 0)
		shca_clock_wait(SHCA_NEVER, SHCA_ALSO_EVENTS);
}

bool shca_clock_park(uint64_t at, uint64_t period, uint64_t look)
{
	uint32_t actor = self.actor - 1;
	struct shca_actor *a = &shca_clk->actors[actor];
	bool looked;

	if (!joined())
		return false;
	atomic_store(&a->spins_since, self.clock);
	atomic_store(&a->period, period);
	atomic_store(&a->looks, 1);
	shca_add(&a->parked, 1);
	want(actor, SHCA_ACTOR_SPINS, look);
	if (at != SHCA_NEVER)
		shca_actor_due_in_period(shca_clk, actor, at);
	await(actor);
	looked = atomic_load(&a->looks);
	atomic_store(&a->looks, 0);
	return !looked;
}

void shca_clock_out(void)
{
	uint32_t actor = self.actor - 1;

	if (!joined())
		return;
	self.depth++;
	shca_clock_lock(here.fabric);
	atomic_store(&shca_clk->actors[actor].state, SHCA_ACTOR_OUT);
	shca_add(&shca_clk->actors[actor].outs, 1);
	shca_clock_disturb(shca_clk, true);
	if (atomic_load(&shca_clk->holder) == actor + 1)
		shca_actors_pass(here.fabric);
	shca_clock_unlock(here.fabric);
	self.depth--;
}

void shca_clock_contend(void)
{
	shca_actors_stir(shca_clk, here.slot, atomic_load(&shca_clk->now));
}

void shca_clock_exclude(void)
{
	self.depth = 1;
}

bool shca_clock_traps(void)
{
	return here.trap && shca_clock_trap;
}

uint64_t shca_clock_tsc(void)
{
	uint64_t before = self.clock, took;

	shca_clock_read();
	took = self.clock - before;
	/* Not what the trap took, as far as that is known. */
	self.clock -= took - here.price[SHCA_CALL_TIME] < self.trap_ns
			      ? took - here.price[SHCA_CALL_TIME]
			      : self.trap_ns;
	return (uint64_t)((unsigned __int128)(self.clock - shca_clk->zero) * shca_clk->tsc_per_s /
			  1000000000u);
}

void shca_clock_inherit(void)
{
	self.heir = true;
}

bool shca_clock_in_program(void)
{
	return (joined() || self.heir) && !self.depth;
}

bool shca_clock_is_joined(pid_t tid)
{
	uint32_t i = atomic_load(&shca_clk->threads[here.slot]);

	while (i && atomic_load(&shca_clk->actors[i - 1].tid) != tid)
		i = atomic_load(&shca_clk->actors[i - 1].sibling);
	return i;
}

uint64_t shca_clock_read(void)
{
	if (self.depth)
		return self.clock;
	if (!joined()) {
		shca_clock_enter(SHCA_CALL_TIME, 1);
		shca_clock_leave();
		return self.clock;
	}
	charge();
	shca_clock_pay(SHCA_CALL_TIME, 1);
	if (here.factor)
		shca_charge_begin();
	return self.clock;
}

void shca_clock_back(void)
{
	uint32_t actor = self.actor - 1;
	uint64_t now;

	if (!joined())
		return;
	shca_clock_lock(here.fabric);
	now = atomic_load(&shca_clk->now);
	shca_clock_disturb(shca_clk, true);
	want(actor, SHCA_ACTOR_READY, self.clock > now ? self.clock : now);
	shca_clock_unlock(here.fabric);
	await(actor);
}
