/* SPDX-License-Identifier: BSD-3-Clause */
#include "domain_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "active.h"
#include "contexts.h"
#include "peer.h"
#include "domain.h"
#include "log.h"
#include "params.h"

static void complete(void *user, const struct tq_status *status)
{
	struct tf_ending *ending = user;

	ending->end(ending, status->error);
}

/* ---- opening ---- */

/* Opens libtupleq's endpoint on the domain's port. */
static int open_transport(struct tf_domain *domain)
{
	const char *dir = getenv("TMPDIR");
	char process[64], why[256];
	struct tq_job job = {
		.key = tf_params_key(),
		.dir = dir ? dir : "/tmp",
		.name = process,
		.log = tf_log_transport,
		.complete = complete,
	};
	struct tq_params *params = tf_params();
	int rc;

	if (!params)
		return -FI_EINVAL;
	snprintf(process, sizeof(process), "process %d", (int)getpid());
	rc = *domain->name ? tq_param_set(params, "if_include", domain->name, why, sizeof(why)) : 0;
	if (!rc)
		rc = tq_open(params, &job, NULL, &domain->tq);
	tq_params_free(params);
	if (rc)
		return rc;
	rc = tq_locator(domain->tq, &domain->locator);
	if (rc) {
		tf_log(FI_LOG_WARN, FI_LOG_DOMAIN,
		       "%s has no IPv4 address as a GID, by which processes could find each other: "
		       "give its network interface one.",
		       tq_device_text(domain->tq));
		tq_close(domain->tq);
		return -FI_ENODATA;
	}
	tq_look_up_open(domain->tq, tf_peer_found, domain);
	return 0;
}

/* ---- closing ---- */

static uint64_t counter(const struct tq_ep *ep, const char *name)
{
	const struct tq_counter_desc *desc;

	for (unsigned i = 0; (desc = tq_counter_desc(i)); i++) {
		if (!strcmp(desc->name, name))
			return tq_counter(ep, i);
	}
	return 0;
}

/* Logs the counters that aren't zero. */
static void report_counters(const struct tf_domain *domain)
{
	const struct tq_counter_desc *desc;

	for (unsigned i = 0; (desc = tq_counter_desc(i)); i++) {
		uint64_t value =
			desc->level ? tq_counter_high(domain->tq, i) : tq_counter(domain->tq, i);

		if (value)
			tf_log(FI_LOG_DEBUG, FI_LOG_DOMAIN, "%s%s = %llu", desc->name,
			       desc->level ? "_high" : "", (unsigned long long)value);
	}
}

/* Logs which share of the messages the adapter has matched. */
static void report(const struct tf_domain *domain)
{
	uint64_t direct = counter(domain->tq, "bits_direct");
	uint64_t software = counter(domain->tq, "bits_software");

	tf_log(FI_LOG_INFO, FI_LOG_DOMAIN, "The adapter has matched %llu of %llu messages.",
	       (unsigned long long)direct, (unsigned long long)(direct + software));
	report_counters(domain);
}

static int domain_close(struct fid *fid)
{
	struct tf_domain *domain = tf_container(fid, struct tf_domain, fid.fid);

	if (atomic_load(&domain->users))
		return -FI_EBUSY;
	if (domain->thread != TQ_THREAD_OWN)
		tq_thread_progress(domain->tq, TQ_THREAD_OWN);
	report(domain);
	tf_active_remove(domain);
	tf_contexts_remove(domain);
	tq_close(domain->tq);
	tf_active_free(domain);
	tf_contexts_free(domain);
	tf_peers_free(domain);
	pthread_mutex_destroy(&domain->lock);
	atomic_fetch_sub(&domain->fabric->users, 1);
	free(domain);
	return 0;
}

/* An event queue for registrations: they end at once, and nobody waits for them. */
static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid;
	(void)flags;
	return bfid->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = tf_no_control,
	.ops_open = tf_no_ops_open,
};

int tf_domain_open(struct tf_fabric *fabric, struct fi_info *info, struct fid_domain **fid,
		   void *context)
{
	const struct fi_domain_attr *attr = info->domain_attr;
	struct tf_domain *domain = calloc(1, sizeof(*domain));
	int rc;

	if (!domain)
		return -FI_ENOMEM;
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = &fid_ops;
	domain->fabric = fabric;
	domain->api_version = fabric->fid.api_version;
	domain->addr_format = info->addr_format;
	atomic_init(&domain->events, info->caps & FI_RMA_EVENT);
	pthread_mutex_init(&domain->lock, NULL);
	if (attr && attr->name)
		snprintf(domain->name, sizeof(domain->name), "%s", attr->name);
	rc = open_transport(domain);
	if (rc) {
		pthread_mutex_destroy(&domain->lock);
		free(domain);
		return rc;
	}
	domain->manual = attr && attr->data_progress == FI_PROGRESS_MANUAL;
	if (!domain->manual)
		tf_domain_need_thread(domain, TQ_THREAD_SERVED);
	atomic_fetch_add(&fabric->users, 1);
	*fid = &domain->fid;
	return 0;
}
