/* SPDX-License-Identifier: BSD-3-Clause */
#include "pvars.h"

#include <stdio.h>
#include <stdint.h>

#include "pml.h"

/* The values when the endpoint was closed: a tool may read them after MPI_Finalize. */
static uint64_t last[TUPLEQ_COUNTERS], last_high[TUPLEQ_COUNTERS];

void mca_pml_tupleq_pvars_keep(void)
{
	for (unsigned i = 0; i < TUPLEQ_COUNTERS && tq_counter_desc(i); i++) {
		last[i] = tq_counter(mca_pml_tupleq.ep, i);
		last_high[i] = tq_counter_high(mca_pml_tupleq.ep, i);
	}
}

static int get_value(const mca_base_pvar_t *pvar, void *value, void *obj)
{
	unsigned i = (unsigned)(uintptr_t)pvar->ctx;

	(void)obj;
	*(unsigned long long *)value =
		mca_pml_tupleq.ep ? tq_counter(mca_pml_tupleq.ep, i) : last[i];
	return OPAL_SUCCESS;
}

static int get_high(const mca_base_pvar_t *pvar, void *value, void *obj)
{
	unsigned i = (unsigned)(uintptr_t)pvar->ctx;

	(void)obj;
	*(unsigned long long *)value =
		mca_pml_tupleq.ep ? tq_counter_high(mca_pml_tupleq.ep, i) : last_high[i];
	return OPAL_SUCCESS;
}

static int register_one(unsigned i, const char *name, const char *help, int var_class,
			mca_base_get_value_fn_t get)
{
	return mca_base_component_pvar_register(
		&mca_pml_tupleq_component.pmlm_version, name, help, OPAL_INFO_LVL_4, var_class,
		MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
		MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, get, NULL, NULL,
		(void *)(uintptr_t)i);
}

int mca_pml_tupleq_pvars_register(void)
{
	const struct tq_counter_desc *desc;
	char name[128], help[256];
	unsigned i;
	int rc;

	for (i = 0; i < TUPLEQ_COUNTERS && (desc = tq_counter_desc(i)); i++) {
		rc = register_one(i, desc->name, desc->help,
				  desc->level ? MCA_BASE_PVAR_CLASS_LEVEL
					      : MCA_BASE_PVAR_CLASS_COUNTER,
				  get_value);
		if (rc < 0)
			return rc;
		if (!desc->level)
			continue;
		snprintf(name, sizeof(name), "%s_high", desc->name);
		snprintf(help, sizeof(help), "the most at one time: %s", desc->help);
		rc = register_one(i, name, help, MCA_BASE_PVAR_CLASS_HIGHWATERMARK, get_high);
		if (rc < 0)
			return rc;
	}
	return OPAL_SUCCESS;
}
