/* SPDX-License-Identifier: BSD-3-Clause */
#include "params.h"

#include <unistd.h>

#include "info.h"
#include "log.h"

/* Names this provider among the users of libtupleq. */
#define JOB_KEY UINT64_C(0x6c69626661627269) /* "libfabri" */

/* Sets the defaults that differ from libtupleq's: the whole address space is registered, if the
 * device can do that. A cache of registrations would have to know of all memory that the user
 * unmaps; without one each message's buffer is registered by itself. */
static void set_defaults(struct tq_params *params)
{
	char why[256];

	tq_param_set(params, "odp", "auto", why, sizeof(why));
}

struct tq_params *tf_params(void)
{
	struct tq_params *params = tq_params_new();
	const struct tq_param_desc *desc;
	char why[256], *value;

	if (!params)
		return NULL;
	set_defaults(params);
	for (unsigned i = 0; (desc = tq_param_desc(i)); i++) {
		if (fi_param_get_str(&tf_provider, desc->name, &value))
			continue;
		if (tq_param_set(params, desc->name, value, why, sizeof(why))) {
			tf_log(FI_LOG_WARN, FI_LOG_CORE, "FI_TUPLEQ_* %s: %s", desc->name, why);
			tq_params_free(params);
			return NULL;
		}
	}
	return params;
}

void tf_params_define(void)
{
	const struct tq_param_desc *desc;

	for (unsigned i = 0; (desc = tq_param_desc(i)); i++)
		fi_param_define(&tf_provider, desc->name, FI_PARAM_STRING, "%s (default: %s)",
				desc->help, desc->value);
	fi_param_define(&tf_provider, "key", FI_PARAM_STRING,
			"Any text. Only processes of one user that have the same key talk with "
			"each other (default: none)");
	fi_param_define(&tf_provider, "tx_size", FI_PARAM_SIZE_T,
			"The most operations under way from an endpoint, 1 to %zu, unless the "
			"program asks for a number (default: %zu)",
			TF_MAX_SIZE, TF_TX_SIZE);
}

size_t tf_params_tx_size(void)
{
	size_t size;

	if (fi_param_get_size_t(&tf_provider, "tx_size", &size))
		return TF_TX_SIZE;
	if (size && size <= TF_MAX_SIZE)
		return size;
	tf_log(FI_LOG_WARN, FI_LOG_CORE, "FI_TUPLEQ_TX_SIZE has to be 1 to %zu, and is ignored.",
	       TF_MAX_SIZE);
	return TF_TX_SIZE;
}

uint64_t tf_params_key(void)
{
	/* FNV-1a, over the user and the text. */
	uint64_t key = JOB_KEY ^ (uint64_t)getuid() << 8;
	char *text;

	if (fi_param_get_str(&tf_provider, "key", &text))
		return key;
	for (; *text; text++)
		key = (key ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return key;
}
