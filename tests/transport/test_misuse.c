/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong calls of libtupleq return errors and do no harm.
 *
 * test_misuse, under "softhca run --nodes 2"
 */
#include <errno.h>
#include <string.h>

#include "duo.h"

static void bad_addresses(struct duo *duo)
{
	struct tq_peer *peer;
	unsigned char copy[1024];
	size_t len;
	const void *address = tq_address(duo->ep, &len);
	int rc;

	memset(copy, 0x5a, sizeof(copy));
	rc = tq_peer_add(duo->ep, copy, sizeof(copy), "garbage", &peer);
	t_true(rc == -EPROTO, "garbage: %d", rc);
	rc = tq_peer_add(duo->ep, copy, 0, "nothing", &peer);
	t_true(rc == -EPROTO, "nothing: %d", rc);
	memcpy(copy, address, len);
	rc = tq_peer_add(duo->ep, copy, len - 1, "too short", &peer);
	t_true(rc == -EPROTO, "too short: %d", rc);
}

static void bad_calls(struct duo *duo)
{
	struct tq_buf buf = {0};
	struct tq_status status;
	struct duo_op op = {0};
	struct tq_req *req;
	int rc;

	rc = tq_send(duo->ctx, 2, 0, &buf, 0, NULL, &req);
	t_true(rc == -EINVAL, "send to a rank that isn't: %d", rc);
	rc = tq_send(duo->ctx, 1, TQ_ANY_TAG, &buf, 0, NULL, &req);
	t_true(rc == -EINVAL, "send with any tag: %d", rc);
	rc = tq_recv(duo->ctx, -7, 0, &buf, NULL, &req, &status);
	t_true(rc == -EINVAL, "receive from a rank that isn't: %d", rc);
	tq_ctx_set_flags(duo->ctx, TQ_CTX_NO_ANY_SOURCE | TQ_CTX_NO_ANY_TAG);
	rc = tq_recv(duo->ctx, TQ_ANY_SOURCE, 0, &buf, NULL, &req, &status);
	t_true(rc == -EINVAL, "a wildcard against the assertion: %d", rc);
	rc = tq_recv(duo->ctx, TQ_ANY_SOURCE, -5, &buf, &op, &op.req, &status);
	t_true(rc == 0, "a wildcard of a negative tag: %d", rc);
	tq_cancel(op.req);
	duo_wait(duo, &op);
	rc = tq_recv(duo->ctx, 0, TQ_ANY_TAG, &buf, NULL, &req, &status);
	t_true(rc == -EBADMSG, "a wildcard tag against the assertion: %d", rc);
	rc = tq_probe(duo->ctx, 0, TQ_ANY_TAG, &status);
	t_true(rc == -EBADMSG, "a probe against the assertion: %d", rc);
}

static const char *parameters(void)
{
	struct tq_params *params = tq_params_new();
	const struct tq_param_desc *desc;
	char why[200];

	for (unsigned i = 0; (desc = tq_param_desc(i)); i++) {
		if (tq_param_set(params, desc->name, desc->value, why, sizeof(why)))
			return "a default isn't accepted";
		if (!desc->help || !desc->help[0] || desc->level < 1 || desc->level > 9)
			return "a parameter without help or level";
		why[0] = '\0';
		if ((desc->type == TQ_PARAM_INT || desc->type == TQ_PARAM_SIZE) &&
		    (tq_param_set(params, desc->name, "many", why, sizeof(why)) != -EINVAL ||
		     !why[0]))
			return "nonsense is accepted";
	}
	if (tq_param_set(params, "no_such", "1", why, sizeof(why)) != -ENOENT)
		return "a parameter that isn't there";
	if (tq_param_set(params, "protocol", "smoke", why, sizeof(why)) != -EINVAL ||
	    tq_param_set(params, "tuples", "0", why, sizeof(why)) != -EINVAL ||
	    tq_param_set(params, "eager_limit", "1G", NULL, 0) != -EINVAL)
		return "a value out of range";
	tq_params_free(params);
	return NULL;
}

int main(void)
{
	duo_result("parameters", parameters());
	duo_run("bad calls", bad_calls);
	duo_run("bad addresses", bad_addresses);
	return duo_failed() != 0;
}
