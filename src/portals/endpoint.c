/* SPDX-License-Identifier: BSD-3-Clause */
#include "endpoint.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib.h"
#include "log.h"

/* Names Portals among the users of libtupleq; processes of one user find each other. */
#define JOB_KEY UINT64_C(0x506f7274616c7334) /* "Portals4" */

static struct {
	_Atomic(struct tq_ep *) ep;
	const struct p4_endpoint_ops *ops;
	unsigned users;
	uint64_t answers; /* that have come; guarded by the library's lock */
	bool thread;
	struct tq_locator locator;
	char name[64];
} endpoint;

struct tq_ep *p4_endpoint(void)
{
	return atomic_load_explicit(&endpoint.ep, memory_order_acquire);
}

struct tq_locator p4_endpoint_locator(void)
{
	return endpoint.locator;
}

void p4_endpoint_progress(void)
{
	struct tq_ep *ep = p4_endpoint();

	if (ep)
		tq_progress(ep);
}

bool p4_endpoint_has_thread(void)
{
	return endpoint.thread;
}

void p4_endpoint_check(void)
{
	endpoint.ops->check();
}

void p4_endpoint_count_answer(void)
{
	p4_assert_held();
	endpoint.answers++;
}

/* ---- opening ---- */

static void complete(void *user, const struct tq_status *status)
{
	struct p4_send *send = user;

	send->end(send, status->error);
}

/* Sets the defaults that differ from libtupleq's: the whole address space is registered, if the
 * device can do that. A cache of registrations would have to know of all memory that the user
 * unmaps; without one each message's buffer is registered by itself. */
static void set_defaults(struct tq_params *params)
{
	char why[256];

	tq_param_set(params, "odp", "auto", why, sizeof(why));
}

/* Sets parameters of libtupleq from PORTALS_PARAMS ("name=value name=value"). Returns false, after
 * a sentence, if one is wrong. */
static bool set_params(struct tq_params *params)
{
	const char *text = getenv("PORTALS_PARAMS");
	char *copy = strdup(text ? text : ""), *rest = copy, *word, why[256];
	bool ok = copy;

	while (ok && (word = strtok_r(rest, " ,", &rest))) {
		char *value = strchr(word, '=');

		snprintf(why, sizeof(why), "%s has no value.", word);
		if (value)
			*value++ = '\0';
		if (!value || tq_param_set(params, word, value, why, sizeof(why))) {
			p4_log(TQ_LOG_ERROR, "PORTALS_PARAMS: %s", why);
			ok = false;
		}
	}
	free(copy);
	return ok;
}

static int code_of(int error)
{
	return error == -ENOMEM ? PTL_NO_SPACE : PTL_FAIL;
}

static int open_endpoint(struct tq_ep **ep)
{
	const char *dir = getenv("TMPDIR");
	struct tq_job job = {
		.key = JOB_KEY ^ (uint64_t)getuid() << 8,
		.dir = dir ? dir : "/tmp",
		.name = endpoint.name,
		.log = p4_log_write,
		.complete = complete,
	};
	struct tq_params *params = tq_params_new();
	int error;

	if (!params)
		return PTL_NO_SPACE;
	snprintf(endpoint.name, sizeof(endpoint.name), "process %d", (int)getpid());
	set_defaults(params);
	if (!set_params(params)) {
		tq_params_free(params);
		return PTL_FAIL;
	}
	error = tq_open(params, &job, NULL, ep);
	tq_params_free(params);
	return error ? code_of(error) : PTL_OK;
}

int p4_endpoint_open(const struct p4_endpoint_ops *ops)
{
	struct tq_ep *ep;
	int rc;

	if (endpoint.users++)
		return PTL_OK;
	rc = open_endpoint(&ep);
	if (rc)
		goto unuse;
	if (tq_locator(ep, &endpoint.locator)) {
		p4_log(TQ_LOG_ERROR,
		       "%s has no IPv4 address as a GID, by which processes could "
		       "find each other: give its network interface one.",
		       tq_device_text(ep));
		tq_close(ep);
		rc = PTL_FAIL;
		goto unuse;
	}
	atomic_store_explicit(&endpoint.ep, ep, memory_order_release);
	endpoint.ops = ops;
	tq_look_up_open(ep, ops->on_found, NULL);
	endpoint.thread = !tq_thread_progress(ep, TQ_THREAD_ALL);
	return PTL_OK;
unuse:
	endpoint.users--;
	return rc;
}

static uint64_t counter(const struct tq_ep *ep, const char *name)
{
	const struct tq_counter_desc *desc;

	for (unsigned i = 0; (desc = tq_counter_desc(i)); i++) {
		if (!strcmp(desc->name, name))
			return tq_counter(ep, i);
	}
	return 0;
}

/* Logs which share of the messages to portal table entries the HCA has matched. Answers are not
 * counted, because they are for no entry. */
static void report(const struct tq_ep *ep)
{
	uint64_t direct = counter(ep, "bits_direct");
	uint64_t software = counter(ep, "bits_software"), answers;

	p4_lock();
	answers = endpoint.answers;
	endpoint.answers = 0;
	p4_unlock();
	p4_log(TQ_LOG_INFO, "The HCA has matched %llu of %llu messages.",
	       (unsigned long long)direct,
	       (unsigned long long)(direct + (software > answers ? software - answers : 0)));
}

bool p4_endpoint_close(void)
{
	struct tq_ep *ep = p4_endpoint();

	if (--endpoint.users)
		return false;
	tq_thread_progress(ep, TQ_THREAD_OWN);
	report(ep);
	tq_close(ep);
	atomic_store_explicit(&endpoint.ep, NULL, memory_order_release);
	endpoint.thread = false;
	return true;
}
