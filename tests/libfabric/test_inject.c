/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Injected messages: any number of them may wait for their receives.
 *
 * test_inject NODES, under "softhca run --nodes NODES"
 */
#include "member.h"

#include <rdma/fi_tagged.h>
#include <stdlib.h>

#define NPROCS   2
#define MESSAGES 6000 /* more than the endpoint may have sends under way */
#define K_DONE   MEMBER_KEY_FREE

static unsigned nodes[NPROCS];

static void send_all(struct member *member)
{
	size_t len = member->info->tx_attr->inject_size;
	unsigned char *data = malloc(len);

	t_holds(member->info->tx_attr->size < MESSAGES);
	for (unsigned i = 0; i < MESSAGES; i++) {
		member_fill(data, len, i);
		member_start(member, fi_tinject(member->ep, data, len, member->peers[1], i));
	}
	free(data);
	procs_put(K_DONE, 1);
}

static void receive_all(struct member *member)
{
	size_t len = member->info->tx_attr->inject_size;
	unsigned char *data = malloc(len);
	struct fi_context context;

	while (!procs_has(0, K_DONE))
		fi_cq_read(member->rx, NULL, 0);
	for (unsigned i = MESSAGES; i--;) {
		member_start(member, fi_trecv(member->ep, data, len, NULL, member->peers[0], i, 0,
					      &context));
		t_eq(member_completion(member->rx, &context).len, len);
		member_check(data, len, i);
	}
	free(data);
}

static void part(unsigned me, void *arg)
{
	struct member member;

	(void)arg;
	member_open_with(&member, me, NPROCS, MEMBER_ONE_SIDED | FI_TAGGED, 0);
	(me ? receive_all : send_all)(&member);
	member_close(&member);
}

static void many(void **state)
{
	(void)state;
	procs_run(NPROCS, nodes, part, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(many)};

	/* Each message waits for its receive; by itself that happens when the receiver is slow. */
	setenv("FI_TUPLEQ_EAGER_LIMIT", "0", 1);
	setenv("FI_TUPLEQ_EAGER_MAX", "0", 1);
	nodes[1] = argc > 1 && atoi(argv[1]) > 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
