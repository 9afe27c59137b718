/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short direct sends that were copied, and that no other send follows, keep their copies until
 * their completions are looked for. The copies must leave room in the pool for others.
 *
 * To be run on a device that takes less than LENGTH bytes inline.
 */
#include "duo.h"

enum { TAGS = 16, EACH = 15, LENGTH = 300, OTHERS = 100, OTHER_TAG = 100 };
enum { POOL = 256 << 10 };

static char data[LENGTH];

static void lingering(struct duo *duo)
{
	static struct duo_op ops[TAGS * EACH];
	uint64_t direct, rts;

	/* The first sends of a tuple are timed, and so are reported. These are more. */
	for (int n = 0; n < 70 * TAGS; n++)
		duo_pass(duo, n % TAGS, data, sizeof(data), 0);
	direct = duo_counter(duo, "sent_direct");
	for (int n = 0; n < TAGS * EACH && duo->me; n++)
		duo_recv(duo, 0, n % TAGS, data, sizeof(data), &ops[n]);
	duo_meet(duo);
	for (int n = 0; n < TAGS * EACH && !duo->me; n++)
		duo_send(duo, 1, n % TAGS, data, sizeof(data), 0, &ops[n]);
	for (int n = 0; n < TAGS * EACH; n++)
		duo_wait(duo, &ops[n]);
	direct = duo_counter(duo, "sent_direct") - direct;
	t_true(duo->me || direct > TAGS * EACH / 2, "only %llu messages went direct",
	       (unsigned long long)direct);
	/* Copies of sends that are reported are freed meanwhile, so other sends find room. */
	for (int n = 0; n < OTHERS; n++)
		duo_pass(duo, OTHER_TAG, data, sizeof(data), TQ_SEND_NO_QUEUE);
	/* Completions of sends that are reported may be late. Progress alone finds them. */
	while (duo_counter(duo, "copy_bytes") > POOL / 4)
		tq_progress(duo->ep);
	duo_meet(duo);
	rts = duo_counter(duo, "sent_rts");
	for (int n = 0; n < OTHERS; n++)
		duo_pass(duo, OTHER_TAG, data, sizeof(data), TQ_SEND_NO_QUEUE);
	rts = duo_counter(duo, "sent_rts") - rts;
	t_true(rts == 0, "then %llu messages found no copy", (unsigned long long)rts);
}

int main(int argc, char **argv)
{
	duo_param("promote_after=0");
	duo_param("giveback_after=0");
	duo_param("hold_lanes=16");
	duo_param("copy_pool=262144"); /* POOL */
	for (int i = 1; i < argc; i++)
		duo_param(argv[i]);
	duo_run("lingering copies", lingering);
	return duo_failed() != 0;
}
