/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More receives in tuple queues than the completion queue has room for at first. The completion
 * queue grows while messages come. If it can't grow, receives wait until there is room.
 *
 * test_growth [limited] [NAME=VALUE ...]
 */
#include <string.h>

#include "duo.h"

enum { TAGS = 120, EACH = 100 };

static bool limited;

static int value(int tag, int i)
{
	return tag * EACH + i;
}

/* Passes messages one after the other, until each tag has its queue. */
static void promote(struct duo *duo)
{
	char c = 0;

	for (int n = 0; n < 3 * TAGS; n++)
		duo_pass(duo, n % TAGS, &c, 1, 0);
}

static void many(struct duo *duo)
{
	static struct duo_op ops[TAGS][EACH];
	static int data[TAGS][EACH];
	uint64_t entries, had = duo_counter(duo, "cq_entries");

	promote(duo);
	/*
	 * Half of the receives are posted before the first message comes, the others while messages
	 * come.
	 */
	for (int part = 0; part < 2; part++) {
		if (part == 0 && !duo->me)
			duo_meet(duo);
		for (int i = part * EACH / 2; i < (part + 1) * EACH / 2; i++)
			for (int t = 0; t < TAGS; t++) {
				if (duo->me) {
					duo_recv(duo, 0, t, &data[t][i], sizeof(int), &ops[t][i]);
					continue;
				}
				data[t][i] = value(t, i);
				duo_send(duo, 1, t, &data[t][i], sizeof(int), 0, &ops[t][i]);
			}
		if (part == 0 && duo->me)
			duo_meet(duo);
	}
	for (int t = 0; t < TAGS; t++)
		for (int i = 0; i < EACH; i++) {
			duo_wait(duo, &ops[t][i]);
			t_true(data[t][i] == value(t, i), "tag %d: message %d was number %d", t,
			       data[t][i] - value(t, 0), i);
		}
	if (!duo->me)
		return;
	entries = duo_counter(duo, "cq_entries");
	t_true(limited ? entries == had : entries > 2 * had,
	       "the completion queue had %llu entries, and has %llu", (unsigned long long)had,
	       (unsigned long long)entries);
	t_true(duo_counter(duo, "recv_direct") > TAGS, "the tuples had no queues");
}

int main(int argc, char **argv)
{
	duo_param("promote_after=0");
	duo_param("giveback_after=0");
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "limited"))
			limited = true;
		else
			duo_param(argv[i]);
	}
	duo_run("many receives", many);
	return duo_failed() != 0;
}
