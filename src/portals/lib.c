/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib.h"

#include "ct.h"
#include "eq.h"
#include "handles.h"
#include "ni.h"
#include "wait.h"

struct p4_lib p4_lib = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.last_work = &p4_lib.first_work,
};

/* Makes calls of PtlInit() and PtlFini() wait for each other. Interfaces are closed without the
 * library's lock, and must not be those of a thread that has called PtlInit() meanwhile. */
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

int PtlInit(void)
{
	pthread_mutex_lock(&counting);
	atomic_fetch_add(&p4_lib.inits, 1);
	pthread_mutex_unlock(&counting);
	return PTL_OK;
}

void PtlFini(void)
{
	pthread_mutex_lock(&counting);
	if (atomic_load(&p4_lib.inits) == 1) {
		p4_nis_close();
		p4_lock();
		p4_handles_destroy();
		p4_eqs_destroy();
		p4_cts_destroy();
		p4_unlock();
		atomic_store(&p4_lib.aborted, false);
	}
	if (atomic_load(&p4_lib.inits) > 0)
		atomic_fetch_sub(&p4_lib.inits, 1);
	pthread_mutex_unlock(&counting);
}

void PtlAbort(void)
{
	atomic_store(&p4_lib.aborted, true);
	p4_wait_notify();
}

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
