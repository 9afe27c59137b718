/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles name the objects that they were made for, and nothing else, as long as generations
 * last. */
#include "base/handles.h"
#include "unit_check.h"

/* Checks that the handle of a removed object names nothing while its place is used again. */
static int late_ones_name_nothing(struct tq_handles *handles, void *what)
{
	uint32_t old[100];

	for (int i = 0; i < 100; i++) {
		old[i] = tq_handle_new(handles, what);
		if (!old[i] || tq_handle_get(handles, old[i]) != what)
			return 0;
		for (int k = 0; k < i; k++) {
			if (old[k] == old[i] || tq_handle_get(handles, old[k]))
				return 0;
		}
		tq_handle_free(handles, old[i]);
	}
	return 1;
}

static int many(struct tq_handles *table)
{
	static int things[5000];
	static uint32_t handles[5000];
	int ok = 1;

	for (int i = 0; i < 5000; i++)
		handles[i] = tq_handle_new(table, &things[i]);
	for (int i = 0; i < 5000; i++)
		ok &= handles[i] && tq_handle_get(table, handles[i]) == &things[i];
	for (int i = 0; i < 5000; i += 2)
		tq_handle_free(table, handles[i]);
	for (int i = 0; i < 5000; i++)
		ok &= tq_handle_get(table, handles[i]) == (i % 2 ? &things[i] : NULL);
	return ok;
}

int main(void)
{
	struct tq_handles table = {0};
	int what;

	unit_check("handles", "none of none",
		   !tq_handle_get(&table, 0) && !tq_handle_get(&table, 12345));
	unit_check("handles", "late ones name nothing", late_ones_name_nothing(&table, &what));
	unit_check("handles", "many", many(&table));
	unit_check("handles", "0 is none", !tq_handle_get(&table, 0));
	tq_handles_destroy(&table);
	return unit_status();
}
