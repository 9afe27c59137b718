/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that are under way while their target changes its lists, and messages that no correct
 * process sends. */
#include "check.h"
#include "stub.h"

#define SENDER 1

static uint8_t memory[64];

/* The message that stub.progress ends, and the calls of stub.progress. */
static struct {
	void *user;
	unsigned calls;
} under_way;

/* Ends the message at the third call. */
static void end_message(void)
{
	if (++under_way.calls != 3)
		return;
	stub_done(STUB_PT, under_way.user, 0);
	under_way.user = NULL;
}

/* Fails the test instead of waiting for ever. */
static void end_nothing(void)
{
	t_true(++under_way.calls < 1000, "a call waits for ever");
}

/* Has the entry take a put of 8 bytes, whose data are under way. */
static void take_put(const struct stub_entry *entry, enum tq_verdict verdict)
{
	const struct p4_wire_request req = stub_request(SENDER, P4_PUT, 8);
	struct tq_take take;

	t_eq(stub_match(entry, SENDER, 0, &req, 8, &take), verdict);
	under_way.user = take.user;
	under_way.calls = 0;
}

/* ---- unlinking ---- */

/* A triggered unlink may run where the end of the entry's message is reported: so it doesn't wait.
 */
static void triggered_unlink(void **state)
{
	const ptl_ct_event_t one = {.success = 1};
	struct stub_side side = stub_open();
	ptl_me_t me = stub_me(memory, sizeof(memory), 0);
	const struct stub_entry *entry;
	ptl_handle_me_t handle;
	ptl_handle_ct_t ct;

	(void)state;
	t_ptl_ok(PtlCTAlloc(side.ni, &ct));
	entry = stub_append(&side, &me, PTL_PRIORITY_LIST, &handle);
	take_put(entry, TQ_TAKE_STAY);
	t_ptl_ok(PtlTriggeredMEUnlink(handle, ct, 1));
	stub.progress = end_nothing;
	t_ptl_ok(PtlCTInc(ct, one));
	t_ptl(PtlMEUnlink(handle), PTL_IN_USE);
	stub_done(STUB_PT, under_way.user, 0);
	stub_event(&side, PTL_EVENT_PUT, PTL_NI_OK);
	t_ptl(PtlMEUnlink(handle), PTL_ARG_INVALID);
	stub_close(&side);
}

/* PtlMEUnlink() waits for the entry's messages even after PtlAbort(). */
static void unlink_after_abort(void **state)
{
	struct stub_side side = stub_open();
	ptl_me_t me = stub_me(memory, sizeof(memory), 0);
	ptl_handle_me_t handle;

	(void)state;
	take_put(stub_append(&side, &me, PTL_PRIORITY_LIST, &handle), TQ_TAKE_STAY);
	stub.progress = end_message;
	PtlAbort();
	t_ptl_ok(PtlMEUnlink(handle));
	t_holds(!under_way.user);
	stub_close(&side);
}

/* An entry that is still there when its interface has ended is gone for the user, while another
 * interface keeps the library busy. */
static void unlink_after_end(void **state)
{
	struct stub_side side = stub_open();
	ptl_me_t me = stub_me(memory, sizeof(memory), 0);
	ptl_handle_me_t handle;
	ptl_handle_ni_t other;

	(void)state;
	stub_append(&side, &me, PTL_PRIORITY_LIST, &handle);
	t_ptl_ok(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY,
			   NULL, NULL, &other));
	t_ptl_ok(PtlNIFini(side.ni));
	t_ptl(PtlMEUnlink(handle), PTL_ARG_INVALID);
	t_ptl_ok(PtlNIFini(other));
	PtlFini();
}

/* Ends the entry that is being appended. */
static void fail_entry(const struct stub_entry *entry)
{
	stub_done(entry->ctx, entry->user, -EIO);
}

/* The source of an entry fails before the entry is said to be linked. */
static void fails_amid_append(void **state)
{
	struct stub_side side = stub_open();
	ptl_me_t me = stub_me(memory, sizeof(memory), PTL_ME_USE_ONCE);

	(void)state;
	me.match_id = stub_id(SENDER);
	me.options &= ~PTL_ME_EVENT_LINK_DISABLE;
	stub_found(SENDER, 0);
	stub.appended = fail_entry;
	stub_append(&side, &me, PTL_PRIORITY_LIST, NULL);
	stub_event(&side, PTL_EVENT_LINK, PTL_NI_OK);
	stub_event(&side, PTL_EVENT_PUT, PTL_NI_UNDELIVERABLE);
	stub_no_event(&side);
	stub_close(&side);
}

/* ---- freeing a portal table entry ---- */

/* Allocates the portal table entry once more, with another event queue. */
static ptl_handle_eq_t allocate_again(const struct stub_side *side)
{
	ptl_handle_eq_t eq;
	ptl_pt_index_t pt;

	t_ptl_ok(PtlEQAlloc(side->ni, STUB_MOST, &eq));
	t_ptl_ok(PtlPTAlloc(side->ni, 0, eq, STUB_PT, &pt));
	return eq;
}

/* PtlPTFree() waits for a message that has used its entry up. */
static void free_amid_message(void **state)
{
	struct stub_side side = stub_open(), again = side;
	ptl_me_t me = stub_me(memory, sizeof(memory), PTL_ME_USE_ONCE);

	(void)state;
	take_put(stub_append(&side, &me, PTL_PRIORITY_LIST, NULL), TQ_TAKE);
	stub.progress = end_message;
	t_ptl_ok(PtlPTFree(side.ni, STUB_PT));
	t_holds(!under_way.user);
	again.eq = allocate_again(&side);
	stub_event(&side, PTL_EVENT_PUT, PTL_NI_OK);
	stub_no_event(&again);
	t_ptl_ok(PtlPTDisable(side.ni, STUB_PT));
	stub_close(&side);
}

/* A message that is being refused keeps nobody from freeing and allocating, and is not forgotten.
 */
static void free_amid_refusal(void **state)
{
	const struct p4_wire_request req = stub_request(SENDER, P4_PUT, 8);
	struct stub_side side = stub_open();
	struct tq_take take;

	(void)state;
	t_eq(stub_unexpected(STUB_PT, SENDER, 0, &req, 8, &take), TQ_DROP);
	under_way.calls = 0;
	stub.progress = end_nothing;
	t_ptl_ok(PtlPTFree(side.ni, STUB_PT));
	allocate_again(&side);
	under_way.user = take.user;
	under_way.calls = 0;
	stub.progress = end_message;
	/* Waits for the message. */
	stub_close(&side);
	t_holds(!under_way.user);
}

/* ---- unexpected messages ---- */

/* Data that were lost are no success for the entry that finds the header, nor for its count. */
static void lost_header(void **state)
{
	const struct p4_wire_request req = stub_request(SENDER, P4_PUT, 8);
	const unsigned options = PTL_ME_EVENT_CT_OVERFLOW | PTL_ME_EVENT_SUCCESS_DISABLE;
	struct stub_side side = stub_open();
	ptl_me_t block = stub_me(memory, sizeof(memory), 0);
	ptl_me_t me = stub_me(memory, 8, PTL_ME_USE_ONCE | options);
	const struct stub_entry *entry;
	struct tq_take lost, found;
	ptl_ct_event_t count;

	(void)state;
	t_ptl_ok(PtlCTAlloc(side.ni, &me.ct_handle));
	stub_append(&side, &block, PTL_OVERFLOW_LIST, NULL);
	t_eq(stub_unexpected(STUB_PT, SENDER, 0, &req, 8, &lost), TQ_STORE);
	stub_done(STUB_PT, lost.user, -EIO);
	stub_event(&side, PTL_EVENT_PUT, PTL_NI_UNDELIVERABLE);
	entry = stub_append(&side, &me, PTL_PRIORITY_LIST, NULL);
	t_eq(stub_match_taken(entry, SENDER, 0, &req, 8, lost.user, &found), TQ_TAKE);
	stub_done(STUB_PT, found.user, 0);
	t_eq(stub_event(&side, PTL_EVENT_PUT_OVERFLOW, PTL_NI_UNDELIVERABLE).mlength, 0);
	t_ptl_ok(PtlCTGet(me.ct_handle, &count));
	t_eq(count.success, 0);
	t_eq(count.failure, 1);
	stub_close(&side);
}

/* A header that nobody has found goes with the interface (LeakSanitizer tells). */
static void left_header(void **state)
{
	const struct p4_wire_request req = stub_request(SENDER, P4_PUT, 8);
	struct stub_side side = stub_open();
	ptl_me_t block = stub_me(memory, sizeof(memory), 0);
	struct tq_take take;

	(void)state;
	stub_append(&side, &block, PTL_OVERFLOW_LIST, NULL);
	t_eq(stub_unexpected(STUB_PT, SENDER, 0, &req, 8, &take), TQ_STORE);
	stub_done(STUB_PT, take.user, 0);
	stub_close(&side);
}

/* Lets a put to the portal table entry come and end, which no list entry takes. Returns the number
 * of messages that were sent then. */
static unsigned send_refused(ptl_pt_index_t pt)
{
	struct p4_wire_request req = stub_request(SENDER, P4_PUT, 8);
	struct tq_take take;

	req.cookie = 1;
	req.ack_req = PTL_ACK_REQ;
	stub.nsent = 0;
	t_eq(stub_unexpected(pt, SENDER, 0, &req, 8, &take), TQ_DROP);
	stub_done(pt, take.user, 0);
	return stub.nsent;
}

/* Returns the failure in the answer to a put that no list entry takes. */
static ptl_ni_fail_t refusal(ptl_pt_index_t pt)
{
	struct p4_wire_response response;

	t_eq(send_refused(pt), 1);
	memcpy(&response, stub.sent[0].header, sizeof(response));
	return response.fail;
}

/* A portal table entry that nobody has allocated is not disabled. */
static void unallocated(void **state)
{
	struct stub_side side = stub_open();

	(void)state;
	stub_found(SENDER, 0);
	t_eq(refusal(STUB_PT + 1), PTL_NI_DROPPED);
	t_eq(refusal(STUB_PT), PTL_NI_DROPPED);
	t_ptl_ok(PtlPTDisable(side.ni, STUB_PT));
	t_eq(refusal(STUB_PT), PTL_NI_PT_DISABLED);
	t_ptl_ok(PtlPTFree(side.ni, STUB_PT));
	t_eq(refusal(STUB_PT), PTL_NI_DROPPED);
	stub_close(&side);
}

/* ---- a new process ---- */

/* Lets a put of the process come and end before tq_peer_add() has returned. */
static void send_early(int process)
{
	t_eq(process, SENDER);
	t_eq(send_refused(STUB_PT), 0);
}

/* The answer to a message that came before tq_peer_add() has returned is sent later. */
static void early_message(void **state)
{
	struct stub_side side = stub_open();

	(void)state;
	stub.added = send_early;
	stub_found(SENDER, 0);
	t_eq(stub.nsent, 1);
	t_eq(stub.sent[0].ctx, STUB_REPLY);
	t_eq(stub.sent[0].to, SENDER);
	stub_close(&side);
}

/* ---- messages that no correct process sends ---- */

/* Expects that an entry which the HCA has matched with such a request ends as if its message were
 * lost, and that nothing is sent. */
static void expect_no_direct(const struct p4_wire_request *req, uint64_t length)
{
	struct stub_side side = stub_open();
	ptl_me_t me = stub_me(memory, sizeof(memory), PTL_ME_USE_ONCE);
	ptl_sr_value_t dropped;

	me.match_id = stub_id(SENDER);
	stub_found(SENDER, 0);
	stub_direct(stub_append(&side, &me, PTL_PRIORITY_LIST, NULL), 0, req, length);
	stub_event(&side, PTL_EVENT_PUT, PTL_NI_UNDELIVERABLE);
	stub_no_event(&side);
	t_ptl_ok(PtlNIStatus(side.ni, PTL_SR_DROP_COUNT, &dropped));
	t_eq(dropped, 1);
	t_eq(stub.nsent, 0);
	stub_close(&side);
}

/* Only puts to the beginning of an entry may go past the matching. */
static void direct_requests(void **state)
{
	struct p4_wire_request req = stub_request(SENDER, P4_GET, 8);

	(void)state;
	req.cookie = 1;
	expect_no_direct(&req, 0);
	req.kind = P4_ATOMIC;
	req.datatype = 200;
	expect_no_direct(&req, 8);
	req.kind = 200;
	expect_no_direct(&req, 8);
	req = stub_request(SENDER, P4_PUT, 9);
	expect_no_direct(&req, 8);
	req = stub_request(SENDER, P4_PUT, 8);
	req.remote_offset = htole64(8);
	expect_no_direct(&req, 8);
	req = stub_request(SENDER + 1, P4_PUT, 8);
	expect_no_direct(&req, 8);
}

/* A request in another process's name is dropped, and not answered to that process. */
static void foreign_request(void **state)
{
	struct p4_wire_request req = stub_request(SENDER, P4_PUT, 8);
	struct stub_side side = stub_open();
	ptl_me_t me = stub_me(memory, sizeof(memory), 0);
	const struct stub_entry *entry = stub_append(&side, &me, PTL_PRIORITY_LIST, NULL);
	ptl_sr_value_t dropped;
	struct tq_take take;

	(void)state;
	req.cookie = 1;
	req.ack_req = PTL_ACK_REQ;
	t_eq(stub_match(entry, SENDER + 1, 0, &req, 8, &take), TQ_PASS);
	t_eq(stub_unexpected(STUB_PT, SENDER + 1, 0, &req, 8, &take), TQ_DROP);
	t_holds(!take.user);
	t_ptl_ok(PtlNIStatus(side.ni, PTL_SR_DROP_COUNT, &dropped));
	t_eq(dropped, 1);
	stub_close(&side);
}

/* Expects that no entry takes such a request. */
static void expect_passed(const struct p4_wire_request *req, uint64_t length)
{
	struct stub_side side = stub_open();
	ptl_me_t me = stub_me(NULL, PTL_SIZE_MAX, 0);
	struct tq_take take;

	t_eq(stub_match(stub_append(&side, &me, PTL_PRIORITY_LIST, NULL), SENDER, 0, req, length,
			&take),
	     TQ_PASS);
	stub_close(&side);
}

/* The lengths of atomic operations, which are copied before they are carried out. */
static void atomic_lengths(void **state)
{
	struct p4_wire_request req = stub_request(SENDER, P4_SWAP, -UINT64_C(16));

	(void)state;
	req.operation = PTL_SWAP;
	req.datatype = PTL_INT64_T;
	expect_passed(&req, P4_OPERAND - 16);
	req.rlength = htole64(P4_ATOMIC_MAX + 8);
	expect_passed(&req, P4_ATOMIC_MAX + 8 + P4_OPERAND);
	req.kind = P4_ATOMIC;
	req.operation = PTL_SUM;
	expect_passed(&req, P4_ATOMIC_MAX + 8);
}

/* An operation that its type doesn't have. */
static void atomic_operations(void **state)
{
	struct p4_wire_request req = stub_request(SENDER, P4_ATOMIC, 8);

	(void)state;
	req.operation = PTL_BAND;
	req.datatype = PTL_DOUBLE;
	expect_passed(&req, 8);
	req.operation = PTL_SWAP;
	expect_passed(&req, 8);
	req.kind = P4_SWAP;
	req.operation = PTL_SUM;
	expect_passed(&req, 8 + P4_OPERAND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(triggered_unlink),  cmocka_unit_test(unlink_after_abort),
		cmocka_unit_test(free_amid_message), cmocka_unit_test(free_amid_refusal),
		cmocka_unit_test(direct_requests),   cmocka_unit_test(atomic_lengths),
		cmocka_unit_test(atomic_operations), cmocka_unit_test(lost_header),
		cmocka_unit_test(unallocated),       cmocka_unit_test(foreign_request),
		cmocka_unit_test(early_message),     cmocka_unit_test(unlink_after_end),
		cmocka_unit_test(fails_amid_append), cmocka_unit_test(left_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
