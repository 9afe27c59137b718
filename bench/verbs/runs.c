/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runs.c - the timed runs on verbs.
 */
#include "runs.h"

#define OVERLAP_FACTOR 2 /* computation, in transfer times */

static double us(uint64_t ns)
{
	return (double)ns / 1e3;
}

void run_send_pingpong(struct bench *bench, const struct row *row, unsigned count, double *out)
{
	struct lane *lane = &bench->end.lane[row->kind];
	uint64_t start = now_ns(), end;

	lane_pace(lane, LANE_SQ_DEPTH, LANE_BATCH, false);
	for (unsigned i = 0; i < count; i++) {
		if (bench->pair.rank) {
			lane_take(lane, 1, true);
			lane_send(lane, IBV_WR_SEND, row->len, i + 1 == count);
			lane_refill(lane);
		} else {
			lane_send(lane, IBV_WR_SEND, row->len, i + 1 == count);
			lane_refill(lane);
			lane_take(lane, 1, true);
		}
	}
	end = now_ns();
	lane_flush(lane);
	out[0] = us(end - start) / count / 2;
}

/* Waits for the last byte of a message, which shows that all of it has arrived, as latency tests of
 * RDMA writes commonly assume. */
static void await_byte(const volatile uint8_t *at, uint8_t value)
{
	struct idle idle = {0};

	while (*at != value)
		pair_idle(&idle);
	atomic_thread_fence(memory_order_acquire);
}

void run_write_pingpong(struct bench *bench, const struct row *row, unsigned count, double *out)
{
	struct lane *lane = &bench->end.lane[row->kind];
	uint8_t *sent = bench->end.send_buf + row->len - 1;
	uint8_t *arrived = bench->end.recv_buf + row->len - 1;
	uint64_t start, end;

	lane_pace(lane, LANE_SQ_DEPTH, LANE_BATCH, false);
	*arrived = 0;
	pair_gate(&bench->pair);
	start = now_ns();
	for (unsigned i = 0; i < count; i++) {
		uint8_t tag = (uint8_t)(i % 255 + 1);

		/* The peer's byte shows that the adapter has read the last byte of the write
		 * before. */
		if (bench->pair.rank)
			await_byte(arrived, tag);
		*sent = tag;
		lane_send(lane, IBV_WR_RDMA_WRITE, row->len, i + 1 == count);
		if (!bench->pair.rank)
			await_byte(arrived, tag);
	}
	end = now_ns();
	lane_flush(lane);
	out[0] = us(end - start) / count / 2;
}

/* Receives the messages of a one-way run. */
static void receive(struct bench *bench, struct lane *lane, unsigned count)
{
	while (count) {
		count -= lane_take(lane, count, true);
		lane_refill(lane);
	}
	bench->pair.sh->end_ns = now_ns();
}

/* Sends `count` messages one way. Returns the time until the sender has all completions and, for
 * SENDs, until the receiver has taken all of theirs. */
static uint64_t one_way(struct bench *bench, const struct row *row, unsigned count)
{
	struct lane *lane = &bench->end.lane[row->kind];
	uint64_t start = now_ns(), end;

	if (!bench->pair.rank) {
		for (unsigned i = 0; i < count; i++)
			lane_send(lane, row->op, row->len, i + 1 == count);
		lane_flush(lane);
	} else if (row->op == IBV_WR_SEND) {
		receive(bench, lane, count);
	}
	end = now_ns();
	pair_barrier(&bench->pair);
	if (row->op == IBV_WR_SEND && bench->pair.sh->end_ns > end)
		end = bench->pair.sh->end_ns;
	return end - start;
}

void run_bandwidth(struct bench *bench, const struct row *row, unsigned count, double *out)
{
	bool small = row->len <= 4096;

	lane_pace(&bench->end.lane[row->kind], small ? LANE_SQ_DEPTH : bench->window,
		  small ? LANE_BATCH : (bench->window + 3) / 4, row->events);
	out[0] = (double)row->len * count / (double)one_way(bench, row, count);
}

void run_rate(struct bench *bench, const struct row *row, unsigned count, double *out)
{
	lane_pace(&bench->end.lane[row->kind], LANE_SQ_DEPTH, LANE_BATCH, false);
	out[0] = count * 1e3 / (double)one_way(bench, row, count);
}

/* Computes without touching memory or calling a function. */
static void compute(uint64_t steps)
{
	uint64_t x = steps;

	for (uint64_t i = 0; i < steps; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x));
	}
}

static uint64_t steps_for(uint64_t ns)
{
	uint64_t trial = 20000, start = now_ns(), took;

	compute(trial);
	took = now_ns() - start;
	return trial * ns / (took ? took : 1) + 1;
}

static void send_one(struct lane *lane, uint32_t len)
{
	lane_send(lane, IBV_WR_SEND, len, true);
	lane_flush(lane);
}

/*
 * Measures posting and overlap. The receiver sleeps in the barrier meanwhile, so a core is free for
 * an engine. Each send follows work done a moment ago, so an engine that stays awake for a while is
 * awake. The results are medians, because a thread that loses its core once would otherwise decide
 * a mean.
 */
void run_post(struct bench *bench, const struct row *row, unsigned count, double *out)
{
	struct lane *lane = &bench->end.lane[row->kind];
	double post[POST_MOST], transfer[POST_MOST], alone[POST_MOST], overlapped[POST_MOST];
	uint64_t steps, t[5];

	lane_pace(lane, LANE_SQ_DEPTH, 1, false);
	if (bench->pair.rank) {
		pair_barrier(&bench->pair);
		receive(bench, lane, 2 * count + 2);
		return;
	}
	send_one(lane, row->len);
	t[0] = now_ns();
	send_one(lane, row->len);
	steps = steps_for(OVERLAP_FACTOR * (now_ns() - t[0]));
	for (unsigned i = 0; i < count; i++) {
		t[0] = now_ns();
		lane_send(lane, IBV_WR_SEND, row->len, true);
		t[1] = now_ns();
		lane_flush(lane);
		t[2] = now_ns();
		compute(steps);
		t[3] = now_ns();
		lane_send(lane, IBV_WR_SEND, row->len, true);
		compute(steps);
		lane_flush(lane);
		t[4] = now_ns();
		post[i] = us(t[1] - t[0]);
		transfer[i] = us(t[2] - t[0]);
		alone[i] = us(t[3] - t[2]);
		overlapped[i] = us(t[4] - t[3]);
	}
	pair_barrier(&bench->pair);
	out[0] = row_median(transfer, count);
	out[1] = row_median(post, count);
	out[2] = row_median(overlapped, count) - row_median(alone, count);
}
