/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib.h"

struct p4_lib p4_lib = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.last_work = &p4_lib.first_work,
};

void p4_defer(struct p4_work *work, void (*run)(struct p4_work *work))
{
	p4_assert_held();
	work->run = run;
	work->next = NULL;
	*p4_lib.last_work = work;
	p4_lib.last_work = &work->next;
}

void p4_unlock_run(void)
{
	struct p4_work *work;

	p4_assert_held();
	if (p4_lib.working || !p4_lib.first_work) {
		p4_unlock();
		return;
	}
	p4_lib.working = true;
	while ((work = p4_lib.first_work)) {
		p4_lib.first_work = work->next;
		if (!work->next)
			p4_lib.last_work = &p4_lib.first_work;
		p4_unlock();
		work->run(work);
		p4_lock();
	}
	p4_lib.working = false;
	p4_unlock();
}
