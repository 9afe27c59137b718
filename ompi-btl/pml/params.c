/* SPDX-License-Identifier: BSD-3-Clause */
#include "params.h"

#include <assert.h>
#include <stdio.h>

#include "series.h"

#include <tupleq/tupleq.h>

/* Parameters that the library may have (an assertion says if more are needed), and bytes of a help
 * text, of which the rest is cut off. */
enum { PARAMS_MAX = 128, HELP_MAX = 1024 };

/* The values, which Open MPI keeps here until the component is unloaded. */
static char *values[PARAMS_MAX];
static bool is_registered[PARAMS_MAX];

/*
 * Registers a parameter as a string, which the library parses. Open MPI would read a text that
 * isn't a number as 0, and its own messages about other values get lost if several processes write
 * them at once.
 */
static int register_one(const mca_base_component_t *component, unsigned i,
			const struct tq_param_desc *desc)
{
	char help[HELP_MAX];
	int rc;

	if (desc->type == TQ_PARAM_ENUM)
		snprintf(help, sizeof(help), "%s (%s)", desc->help, desc->choices);
	else if (desc->type == TQ_PARAM_BOOL)
		snprintf(help, sizeof(help), "%s (1 or 0)", desc->help);
	else
		snprintf(help, sizeof(help), "%s", desc->help);
	values[i] = (char *)desc->value;
	is_registered[i] = true;
	rc = mca_base_component_var_register(
		component, desc->name, help, MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0,
		(mca_base_var_info_lvl_t)(OPAL_INFO_LVL_1 + desc->level - 1),
		MCA_BASE_VAR_SCOPE_READONLY, &values[i]);
	return rc < 0 ? rc : OPAL_SUCCESS;
}

static bool is_in(const char *name, const char *const *list)
{
	for (; list && *list; list++) {
		if (!strcmp(*list, name))
			return true;
	}
	return false;
}

int mca_pml_tupleq_params_register(const mca_base_component_t *component, const char *const *fixed)
{
	const struct tq_param_desc *desc;
	unsigned i;
	int rc;

	for (i = 0; (desc = tq_param_desc(i)); i++) {
		assert(i < PARAMS_MAX);
		if (is_in(desc->name, fixed))
			continue;
		rc = register_one(component, i, desc);
		if (rc != OPAL_SUCCESS)
			return rc;
	}
	return OPAL_SUCCESS;
}

struct tq_params *mca_pml_tupleq_params(const mca_base_component_t *component, char *why,
					size_t size)
{
	struct tq_params *params = tq_params_new();
	const struct tq_param_desc *desc;
	char reason[512] = "";
	unsigned i;

	if (!params) {
		snprintf(why, size, "There is no memory left.");
		return NULL;
	}
	for (i = 0; (desc = tq_param_desc(i)); i++) {
		if (!is_registered[i])
			continue;
		if (!tq_param_set(params, desc->name, values[i] ? values[i] : "", reason,
				  sizeof(reason)))
			continue;
		snprintf(why, size, "%s_tupleq_%s: %s", component->mca_type_name, desc->name,
			 reason);
		tq_params_free(params);
		return NULL;
	}
	return params;
}

bool mca_pml_tupleq_is_named(const char *project, const char *framework, bool first)
{
	int var = mca_base_var_find(project, framework, NULL, NULL);
	const char *const *value = NULL, *name;
	size_t len;

	if (var < 0 || mca_base_var_get_value(var, &value, NULL, NULL) != OPAL_SUCCESS || !value ||
	    !*value || **value == '^')
		return false;
	for (name = *value; *name; name += len + (name[len] == ',')) {
		len = strcspn(name, ",");
		if (len == strlen("tupleq") && !strncmp(name, "tupleq", len))
			return true;
		if (first)
			return false;
	}
	return false;
}
