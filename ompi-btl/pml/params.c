/* SPDX-License-Identifier: BSD-3-Clause */
#include "params.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "pml.h"

enum { PARAMS_MAX = 128, CHOICES_MAX = 16 };

/* Where Open MPI keeps a variable's value. Static: it does so until the component is unloaded. */
static union {
	bool yes;
	int choice;
	char *string;
} values[PARAMS_MAX];

/* The choices' names, which the MCA system doesn't copy before it is told of them. */
static int register_choice(const struct tq_param_desc *desc, mca_base_var_enum_t **enumerator,
			   int *value)
{
	mca_base_var_enum_value_t list[CHOICES_MAX + 1] = {{0, NULL}};
	char *names = strdup(desc->choices), *rest = names, *name;
	int n = 0, rc;

	if (!names)
		return OPAL_ERR_OUT_OF_RESOURCE;
	while ((name = strsep(&rest, "|"))) {
		assert(n < CHOICES_MAX);
		list[n] = (mca_base_var_enum_value_t){n, name};
		if (!strcmp(name, desc->value))
			*value = n;
		n++;
	}
	rc = mca_base_var_enum_create(desc->name, list, enumerator);
	free(names);
	return rc;
}

static int register_one(unsigned i, const struct tq_param_desc *desc)
{
	mca_base_var_type_t type = MCA_BASE_VAR_TYPE_STRING;
	mca_base_var_enum_t *enumerator = NULL;
	int rc = OPAL_SUCCESS;

	switch (desc->type) {
	case TQ_PARAM_BOOL:
		type = MCA_BASE_VAR_TYPE_BOOL;
		values[i].yes = !strcmp(desc->value, "1") || !strcmp(desc->value, "true") ||
				!strcmp(desc->value, "yes") || !strcmp(desc->value, "on");
		break;
	case TQ_PARAM_ENUM:
		type = MCA_BASE_VAR_TYPE_INT;
		rc = register_choice(desc, &enumerator, &values[i].choice);
		break;
	/* Numbers too: of what isn't one Open MPI makes 0, where the library says so. */
	case TQ_PARAM_INT:
	case TQ_PARAM_SIZE:
	case TQ_PARAM_STRING:
		values[i].string = (char *)desc->value;
		break;
	}
	if (rc != OPAL_SUCCESS)
		return rc;
	rc = mca_base_component_var_register(
		&mca_pml_tupleq_component.pmlm_version, desc->name, desc->help, type, enumerator, 0,
		0, (mca_base_var_info_lvl_t)(OPAL_INFO_LVL_1 + desc->level - 1),
		MCA_BASE_VAR_SCOPE_READONLY, &values[i]);
	if (enumerator)
		OBJ_RELEASE(enumerator);
	return rc < 0 ? rc : OPAL_SUCCESS;
}

int tupleq_params_register(void)
{
	const struct tq_param_desc *desc;
	unsigned i;
	int rc;

	for (i = 0; (desc = tq_param_desc(i)); i++) {
		assert(i < PARAMS_MAX);
		rc = register_one(i, desc);
		if (rc != OPAL_SUCCESS)
			return rc;
	}
	return OPAL_SUCCESS;
}

/* The value as a string, in `text` where it has to be made. */
static const char *value_text(unsigned i, const struct tq_param_desc *desc, char *text, size_t size)
{
	const char *name = desc->choices, *end;
	int n;

	switch (desc->type) {
	case TQ_PARAM_BOOL:
		return values[i].yes ? "1" : "0";
	case TQ_PARAM_ENUM:
		for (n = values[i].choice; n > 0; n--)
			name = strchr(name, '|') + 1;
		end = strchrnul(name, '|');
		snprintf(text, size, "%.*s", (int)(end - name), name);
		return text;
	case TQ_PARAM_INT:
	case TQ_PARAM_SIZE:
	case TQ_PARAM_STRING:
		break;
	}
	return values[i].string ? values[i].string : "";
}

struct tq_params *tupleq_params(char *why, size_t size)
{
	struct tq_params *params = tq_params_new();
	const struct tq_param_desc *desc;
	char text[256], reason[512] = "";
	unsigned i;

	if (!params) {
		snprintf(why, size, "There is no memory left.");
		return NULL;
	}
	for (i = 0; (desc = tq_param_desc(i)); i++) {
		if (!tq_param_set(params, desc->name, value_text(i, desc, text, sizeof(text)),
				  reason, sizeof(reason)))
			continue;
		snprintf(why, size, "pml_tupleq_%s: %s", desc->name, reason);
		tq_params_free(params);
		return NULL;
	}
	return params;
}
