/* SPDX-License-Identifier: BSD-3-Clause */
#include "domain.h"

void tf_domain_need_thread(struct tf_domain *domain, enum tq_thread_duty duty)
{
	pthread_mutex_lock(&domain->lock);
	if (domain->thread != TQ_THREAD_ALL && !tq_thread_progress(domain->tq, duty))
		domain->thread = duty;
	pthread_mutex_unlock(&domain->lock);
}
