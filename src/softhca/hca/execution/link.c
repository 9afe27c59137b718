/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - the link model: reserving ports. A port sends its messages one after the other. The
 * messages of several senders share the port that they arrive at: a message that is reserved later
 * takes the time that earlier ones have left free, in pieces.
 */
#include "link.h"

uint64_t shca_link_latency(void)
{
	return shca_self.fabric.hdr->config.link_latency_ns;
}

/* Reserves the port from time t on, for `busy` ns. Returns when the port was free to begin. */
static uint64_t reserve(_Atomic uint64_t *free_at, uint64_t t, uint64_t busy)
{
	uint64_t was = atomic_load_explicit(free_at, memory_order_relaxed), begin;

	do
		begin = was > t ? was : t;
	while (!atomic_compare_exchange_weak_explicit(free_at, &was, begin + busy,
						      memory_order_relaxed, memory_order_relaxed));
	return begin;
}

/* Returns the bandwidth in bytes a second, or 0 if it isn't limited. `to` may be NULL: a group. */
static uint64_t bandwidth(const struct shca_hca *from, const struct shca_hca *to)
{
	const struct shca_config *config = &shca_self.fabric.hdr->config;

	return from == to ? config->loopback_bytes_per_sec : config->link_bytes_per_sec;
}

/* Returns how long (ns) a message keeps a port busy. */
static uint64_t busy_time(const struct shca_hca *from, const struct shca_hca *to, uint64_t bytes)
{
	return shca_config_busy_time(&shca_self.fabric.hdr->config, from == to, bytes);
}

/* The part of a slot that is taken, in ns from its start. Free time within it is lost: at most a
 * slot for each message. */
struct taken {
	uint64_t from, until;
};

#define SLOT_NS     (1u << SHCA_CALENDAR_LOG2)
#define LAP_NS      ((uint64_t)SLOT_NS * SHCA_CALENDAR_SLOTS)
#define OFFSET_BITS (SHCA_CALENDAR_LOG2 + 1)
#define OFFSET_MASK ((1u << OFFSET_BITS) - 1)

/* Returns the part of a slot that is taken in that lap through the calendar. */
static struct taken unpack(uint64_t word, uint64_t lap)
{
	/* An earlier lap's word. */
	if (word >> 2 * OFFSET_BITS != lap)
		return (struct taken){SLOT_NS, 0};
	return (struct taken){word >> OFFSET_BITS & OFFSET_MASK, word & OFFSET_MASK};
}

static uint64_t pack(struct taken taken, uint64_t lap)
{
	return lap << 2 * OFFSET_BITS | taken.from << OFFSET_BITS | taken.until;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Takes up to `busy` ns from offset `at` on, before and behind what is taken. Returns how many,
 * and stores where they begin and end. */
static uint64_t take(struct taken *taken, uint64_t at, uint64_t busy, uint64_t *begin,
		     uint64_t *end)
{
	bool is_free = taken->from >= taken->until;
	uint64_t before = 0, behind, start;

	if (!is_free && at < taken->from) {
		before = least(taken->from - at, busy);
		*begin = at;
		*end = at + before;
		taken->from = at;
	}
	start = is_free || at > taken->until ? at : taken->until;
	behind = least(SLOT_NS - start, busy - before);
	if (!behind)
		return before;
	if (!before)
		*begin = start;
	*end = start + behind;
	if (is_free)
		taken->from = start;
	taken->until = *end;
	return before + behind;
}

/* Takes up to `busy` ns, from time t on, of the slot with this number. Returns how many; *ahead is
 * the number of laps until the slot's word, 0 if the word is not that of a later lap. */
static uint64_t take_slot(struct shca_calendar *calendar, uint64_t number, uint64_t t,
			  uint64_t busy, uint64_t *begin, uint64_t *end, uint64_t *ahead)
{
	_Atomic uint64_t *slot = &calendar->slots[number % SHCA_CALENDAR_SLOTS];
	const uint64_t start = number << SHCA_CALENDAR_LOG2, lap = number / SHCA_CALENDAR_SLOTS;
	uint64_t was = atomic_load_explicit(slot, memory_order_relaxed), n;
	struct taken taken;

	*ahead = 0;
	do {
		/* The word is that of a later lap already. */
		if (was >> 2 * OFFSET_BITS > lap) {
			*ahead = (was >> 2 * OFFSET_BITS) - lap;
			return 0;
		}
		taken = unpack(was, lap);
		n = take(&taken, t > start ? t - start : 0, busy, begin, end);
		if (!n)
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(
		slot, &was, pack(taken, lap), memory_order_relaxed, memory_order_relaxed));
	*begin += start;
	*end += start;
	return n;
}

/* Returns true if the rest of a message is so short that its arrival isn't put off behind messages
 * that are reserved already. The port's time for the rest is taken behind them nevertheless. */
static bool is_tail(uint64_t left, uint64_t busy)
{
	return left <= SLOT_NS && left <= busy / 8;
}

/* Sums over the slots of the current lap of a walk through the calendar. */
struct walk {
	uint64_t slots;
	uint64_t ahead; /* the least number of laps until a slot's word */
	uint64_t taken; /* ns */
};

/*
 * Returns how many laps a walk leaves out after a whole lap, when `left` ns are still to be taken.
 * The calendar knows one lap of each slot. If all slots are those of later laps, there is no free
 * time before these. If all were free, so are the next laps, and the last one marks each slot.
 */
static uint64_t laps_to_skip(const struct walk *walk, uint64_t left)
{
	if (walk->ahead > 1)
		return walk->ahead - 1;
	return walk->taken == LAP_NS && left > 2 * LAP_NS ? left / LAP_NS - 1 : 0;
}

/* Takes `busy` ns of the port's time from *first on. Returns when the last byte is there, and
 * stores in *first when the first of them begins. */
static uint64_t fill(struct shca_calendar *calendar, uint64_t busy, uint64_t *first)
{
	uint64_t t = *first, begin = t, end = t, left = busy, last = 0;
	struct walk walk = {.ahead = UINT64_MAX};

	for (uint64_t number = t >> SHCA_CALENDAR_LOG2; left; number++) {
		uint64_t ahead, n = take_slot(calendar, number, t, left, &begin, &end, &ahead);

		if (n && left == busy)
			*first = begin;
		left -= n;
		if (n && !last && is_tail(left, busy))
			last = end + left;
		walk.ahead = least(walk.ahead, ahead);
		walk.taken += n;
		if (++walk.slots == SHCA_CALENDAR_SLOTS) {
			uint64_t skipped = laps_to_skip(&walk, left);

			number += skipped * SHCA_CALENDAR_SLOTS;
			left -= walk.taken ? skipped * LAP_NS : 0;
			walk = (struct walk){.ahead = UINT64_MAX};
		}
	}
	return last ? last : end;
}

uint64_t shca_link_leave(struct shca_hca *from, const struct shca_hca *to, uint64_t bytes,
			 uint64_t start)
{
	return reserve(&from->egress_free, start, busy_time(from, to, bytes)) + shca_link_latency();
}

bool shca_link_is_open(const struct shca_hca *from, uint64_t *until)
{
	uint64_t open = atomic_load_explicit(&from->egress_open, memory_order_relaxed);

	/* The message for which the port is open comes first. */
	*until = open + 1;
	return open >= shca_now();
}

bool shca_link_opens(struct shca_hca *from, uint64_t start, uint64_t *until)
{
	uint64_t free_at = atomic_load_explicit(&from->egress_free, memory_order_relaxed);

	*until = free_at > start ? free_at : start;
	if (*until <= shca_now())
		return false;
	atomic_store_explicit(&from->egress_open, *until, memory_order_relaxed);
	return true;
}

uint64_t shca_link_arrive(const struct shca_hca *from, struct shca_hca *to, uint64_t bytes,
			  uint64_t *first)
{
	struct shca_calendar *calendar =
		(struct shca_calendar *)((char *)shca_self.fabric.hdr + to->ingress);

	return fill(calendar, busy_time(from, to, bytes), first);
}

uint64_t shca_link_until_nak(const struct shca_hca *from, const struct shca_hca *to, uint64_t mtu)
{
	return mtu +
	       (uint64_t)((double)bandwidth(from, to) * 2 * (double)shca_link_latency() / 1e9);
}

uint64_t shca_link_send(struct shca_hca *from, struct shca_hca *to, uint64_t bytes, uint64_t start,
			uint64_t *first)
{
	*first = shca_link_leave(from, to, bytes, start);
	return shca_link_arrive(from, to, bytes, first);
}
