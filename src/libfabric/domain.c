/* SPDX-License-Identifier: BSD-3-Clause */
#include "domain.h"

void tf_domain_need_thread(struct tf_domain *domain)
{
	pthread_mutex_lock(&domain->lock);
	if (!domain->thread)
		domain->thread = !tq_thread_progress(domain->tq, true);
	pthread_mutex_unlock(&domain->lock);
}
