/* SPDX-License-Identifier: BSD-3-Clause */
#include "params.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "claim.h"
#include "series.h"

#include <tupleq/tupleq.h>

/* Parameters that the library may have: an assertion says if more are needed. */
enum { PARAMS_MAX = 128 };
/* Bytes of the names of unknown parameters in a warning. */
enum { NAMES_MAX = 300 };

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
	char *help;
	int rc;

	if (desc->type == TQ_PARAM_ENUM)
		rc = asprintf(&help, "%s (%s)", desc->help, desc->choices);
	else if (desc->type == TQ_PARAM_BOOL)
		rc = asprintf(&help, "%s (1 or 0)", desc->help);
	else
		rc = asprintf(&help, "%s", desc->help);
	if (rc < 0)
		return OPAL_ERR_OUT_OF_RESOURCE;
	values[i] = (char *)desc->value;
	is_registered[i] = true;
	rc = mca_base_component_var_register(
		component, desc->name, help, MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0,
		(mca_base_var_info_lvl_t)(OPAL_INFO_LVL_1 + desc->level - 1),
		MCA_BASE_VAR_SCOPE_READONLY, &values[i]);
	free(help);
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

/* Returns true if an entry of the environment, behind the prefix of its component, is a variable
 * that Open MPI knows. */
static bool exists(const char *project, const char *framework, const char *entry, size_t len)
{
	char name[128];

	if (len >= sizeof(name))
		return false;
	memcpy(name, entry, len);
	name[len] = '\0';
	return mca_base_var_find(project, framework, "tupleq", name) >= 0;
}

void mca_pml_tupleq_params_warn(const char *project, const char *framework,
				void (*log)(void *arg, enum tq_log_level level, const char *text))
{
	char prefix[64], text[NAMES_MAX + 200] = "";
	int prefix_len = snprintf(prefix, sizeof(prefix), "OMPI_MCA_%s_tupleq_", framework);
	int used = 0;

	if (mca_base_var_group_find(project, framework, "tupleq") < 0)
		return;
	for (char **entry = environ; *entry; entry++) {
		const char *name = *entry + prefix_len;
		size_t len = strcspn(*entry, "=");

		if (strncmp(*entry, prefix, (size_t)prefix_len) != 0 ||
		    exists(project, framework, name, len - (size_t)prefix_len))
			continue;
		used += snprintf(text + used, NAMES_MAX - (size_t)used, "%s%s_tupleq_%.*s",
				 used ? ", " : "", framework, (int)(len - (size_t)prefix_len),
				 name);
		if (used >= NAMES_MAX)
			break;
	}
	if (!used || !mca_pml_tupleq_claim_warning(NULL, framework))
		return;
	used = used < NAMES_MAX ? used : NAMES_MAX;
	snprintf(
		text + used, sizeof(text) - (size_t)used,
		": there is no such parameter, so Open MPI ignores it. ompi_info --param %s tupleq "
		"--level 9 lists those that there are.",
		framework);
	log(NULL, TQ_LOG_WARN, text);
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
