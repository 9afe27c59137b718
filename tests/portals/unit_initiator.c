/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations whose target fails, or sends answers that no correct process sends. */
#include "answer.h"
#include "check.h"
#include "stub.h"
#include "wire.h"

#define TARGET 1

static uint8_t memory[64];

static ptl_handle_md_t bind_with(const struct stub_side *side, unsigned options)
{
	const ptl_md_t md = {.start = memory,
			     .length = sizeof(memory),
			     .options = options,
			     .eq_handle = side->eq,
			     .ct_handle = PTL_CT_NONE};
	ptl_handle_md_t handle;

	t_ptl_ok(PtlMDBind(side->ni, &md, &handle));
	return handle;
}

static ptl_handle_md_t bind(const struct stub_side *side)
{
	return bind_with(side, 0);
}

/* Starts a get of 8 bytes, whose request is stub.sent[0]. */
static void get(ptl_handle_md_t md)
{
	t_ptl_ok(PtlGet(md, 0, 8, stub_id(TARGET), STUB_PT, 0, 0, NULL));
	t_eq(stub.nsent, 1);
}

/* Returns an answer to stub.sent[0]. */
static struct p4_wire_response answer(uint64_t mlength)
{
	struct p4_wire_request req;

	memcpy(&req, stub.sent[0].header, sizeof(req));
	return (struct p4_wire_response){.cookie = req.cookie, .mlength = htole64(mlength)};
}

/* Returns the entry of all answers, with libportals' own argument. */
static struct stub_entry answers(void)
{
	return (struct stub_entry){STUB_REPLY, -1, p4_answer_entry()};
}

/* Has an answer with `length` bytes of data come in from a process. Returns where libportals stores
 * the data. */
static struct tq_take come_in(int from, const struct p4_wire_response *reply, uint64_t length)
{
	struct stub_entry entry = answers();
	struct tq_take take;

	t_eq(stub_match(&entry, from, 0, reply, length, &take), TQ_TAKE_STAY);
	return take;
}

/* The target fails while its reply comes in: the memory isn't the user's before that has ended. */
static void fails_amid_reply(void **state)
{
	struct stub_side side = stub_open();
	ptl_handle_md_t md = bind(&side);
	struct p4_wire_response reply;
	struct tq_take take;

	(void)state;
	stub_found(TARGET, 0);
	get(md);
	reply = answer(8);
	take = come_in(TARGET, &reply, 8);
	t_holds(take.buf.addr == memory && take.buf.len == 8);
	/* The only entry of the context of answers is the watch for the target's end. */
	t_eq(stub.nentries, 1);
	stub_done(STUB_REPLY, stub.entries[0].user, -EIO);
	stub_no_event(&side);
	t_ptl(PtlMDRelease(md), PTL_IN_USE);
	stub_done(STUB_REPLY, take.user, -EIO);
	stub_event(&side, PTL_EVENT_REPLY, PTL_NI_UNDELIVERABLE);
	stub_no_event(&side);
	t_ptl_ok(PtlMDRelease(md));
	stub_close(&side);
}

/* The target fails after its reply, and before the end of the request is reported. */
static void fails_after_reply(void **state)
{
	struct stub_side side = stub_open();
	ptl_handle_md_t md = bind(&side);
	struct p4_wire_response reply;
	struct tq_take take;

	(void)state;
	stub_found(TARGET, 0);
	stub.slow_sends = true;
	get(md);
	reply = answer(8);
	take = come_in(TARGET, &reply, 8);
	stub_done(STUB_REPLY, take.user, 0);
	stub_done(STUB_REPLY, stub.entries[0].user, -EIO);
	stub_no_event(&side);
	stub_end_send(&stub.sent[0], -EIO);
	stub_event(&side, PTL_EVENT_REPLY, PTL_NI_OK);
	t_ptl_ok(PtlMDRelease(md));
	stub_close(&side);
}

/* The target fails before the end of the request is reported: the event of the send comes first. */
static void fails_before_sent(void **state)
{
	struct stub_side side = stub_open();
	ptl_handle_md_t md = bind(&side);

	(void)state;
	stub_found(TARGET, 0);
	stub.slow_sends = true;
	t_ptl_ok(PtlPut(md, 0, 8, PTL_ACK_REQ, stub_id(TARGET), STUB_PT, 0, 0, NULL, 0));
	t_eq(stub.nsent, 1);
	stub_done(STUB_REPLY, stub.entries[0].user, -EIO);
	stub_no_event(&side);
	t_ptl(PtlMDRelease(md), PTL_IN_USE);
	stub_end_send(&stub.sent[0], -EIO);
	stub_event(&side, PTL_EVENT_SEND, PTL_NI_UNDELIVERABLE);
	stub_event(&side, PTL_EVENT_ACK, PTL_NI_UNDELIVERABLE);
	stub_no_event(&side);
	t_ptl_ok(PtlMDRelease(md));
	stub_close(&side);
}

/* Data of a volatile descriptor are the user's again when the call returns, although the process is
 * still looked up. */
static void volatile_swap(void **state)
{
	struct stub_side side = stub_open();
	ptl_handle_md_t from = bind_with(&side, PTL_MD_VOLATILE), to = bind(&side);
	const uint8_t *sent;

	(void)state;
	memory[8] = 1;
	t_ptl_ok(PtlSwap(to, 0, from, 8, 1, stub_id(TARGET), STUB_PT, 0, 0, NULL, 0, NULL, PTL_SWAP,
			 PTL_UINT8_T));
	memory[8] = 2;
	t_eq(stub.nsent, 0);
	stub_found(TARGET, 0);
	t_eq(stub.nsent, 1);
	t_eq(stub.sent[0].buf.len, P4_OPERAND + 1);
	sent = stub.sent[0].buf.addr;
	t_eq(sent[P4_OPERAND], 1);
	stub_close(&side);
}

/* A process that was not found is looked up again by the next operation. */
static void look_up_again(void **state)
{
	struct stub_side side = stub_open();
	ptl_handle_md_t md = bind(&side);
	unsigned before = stub.nlook_ups;

	(void)state;
	t_ptl_ok(PtlGet(md, 0, 8, stub_id(TARGET), STUB_PT, 0, 0, NULL));
	t_eq(stub.nlook_ups, before + 1);
	stub_found(TARGET, -ETIMEDOUT);
	stub_event(&side, PTL_EVENT_REPLY, PTL_NI_UNDELIVERABLE);
	t_ptl_ok(PtlGet(md, 0, 8, stub_id(TARGET), STUB_PT, 0, 0, NULL));
	t_eq(stub.nlook_ups, before + 2);
	stub_no_event(&side);
	stub_found(TARGET, 0);
	t_eq(stub.nsent, 1);
	stub_close(&side);
}

/* A process that was not found is there when it has connected. */
static void connects_late(void **state)
{
	struct stub_side side = stub_open();
	ptl_handle_md_t md = bind(&side);

	(void)state;
	t_ptl_ok(PtlGet(md, 0, 8, stub_id(TARGET), STUB_PT, 0, 0, NULL));
	stub_found(TARGET, -ETIMEDOUT);
	stub_event(&side, PTL_EVENT_REPLY, PTL_NI_UNDELIVERABLE);
	stub_found(TARGET, 0);
	get(md);
	stub_no_event(&side);
	stub_close(&side);
}

/* ---- answers that no correct process sends ---- */

/* Only the target can answer, although others can guess the operation's cookie. */
static void foreign_answer(void **state)
{
	struct stub_side side = stub_open();
	ptl_handle_md_t md = bind(&side);
	struct p4_wire_response reply;
	struct tq_take take;

	(void)state;
	stub_found(TARGET, 0);
	get(md);
	reply = answer(8);
	take = come_in(TARGET + 1, &reply, 8);
	t_eq(take.buf.len, 0);
	stub_done(STUB_REPLY, take.user, 0);
	stub_no_event(&side);
	take = come_in(TARGET, &reply, 8);
	t_eq(take.buf.len, 8);
	stub_done(STUB_REPLY, take.user, 0);
	t_eq(stub_event(&side, PTL_EVENT_REPLY, PTL_NI_OK).mlength, 8);
	stub_close(&side);
}

/* Expects that a get of 8 bytes fails if this answer comes, with `length` bytes of data. */
static void expect_no_answer(struct p4_wire_response reply, uint64_t length)
{
	struct stub_side side = stub_open();
	ptl_handle_md_t md = bind(&side);
	struct tq_take take;

	stub_found(TARGET, 0);
	get(md);
	reply.cookie = answer(0).cookie;
	take = come_in(TARGET, &reply, length);
	t_eq(take.buf.len, 0);
	stub_done(STUB_REPLY, take.user, 0);
	t_eq(stub_event(&side, PTL_EVENT_REPLY, PTL_NI_UNDELIVERABLE).mlength, 0);
	stub_close(&side);
}

static void wrong_answers(void **state)
{
	(void)state;
	expect_no_answer((struct p4_wire_response){.mlength = UINT64_MAX}, 8);
	expect_no_answer((struct p4_wire_response){.mlength = htole64(8)}, 7);
	expect_no_answer((struct p4_wire_response){.mlength = htole64(9)}, 9);
	expect_no_answer((struct p4_wire_response){.mlength = htole64(8), .fail = 200}, 8);
	expect_no_answer((struct p4_wire_response){.mlength = htole64(8), .list = 200}, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fails_amid_reply),  cmocka_unit_test(fails_after_reply),
		cmocka_unit_test(fails_before_sent), cmocka_unit_test(volatile_swap),
		cmocka_unit_test(look_up_again),     cmocka_unit_test(connects_late),
		cmocka_unit_test(foreign_answer),    cmocka_unit_test(wrong_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
