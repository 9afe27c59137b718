/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of parameters: the parser understands each form of a value, and refuses a wrong value with
 * a sentence that says what the parameter takes. */
#include <errno.h>
#include <string.h>

#include <tupleq/tupleq.h>

#include "unit_check.h"

enum { VALUES = 8 };

/* Values that `name` refuses, with a sentence that has this text. */
static const struct refusal {
	const char *name, *text, *values[VALUES];
} refusals[] = {
	{"hold_lanes", "hold_lanes = \"abc\": it takes a whole number.", {"abc"}},
	{"hold_lanes",
	 "it takes a whole number",
	 {"", " 8", "8K", "1.5", "8 9", "+8", "99999999999999999999"}},
	{"hold_lanes", "hold_lanes = 0: it takes 1 to 1024", {"0"}},
	/* A parser that stops at the first wrong character would read 0, which these accept. */
	{"promote_after", "it takes a whole number", {"many"}},
	{"pkey", "it takes a whole number", {"x8001", "0x"}},
	{"pkey", "no partition has a key whose lower 15 bits are 0", {"0x8000", "32768"}},
	{"pkey", "it takes 0 to 65535", {"0x18001", "-1"}},
	{"eager_limit",
	 "it takes a whole number of bytes, such as 8192, 8K or 1M",
	 {"short", "4T", "K", "8KK", "8Kb"}},
	/* Sizes that would be negative, or wrap around. */
	{"rdma_chunk", "it takes 4096 to 1073741824", {"-1M", "0", "4095", "2G"}},
	{"copy_pool", "it takes a whole number of bytes", {"18014398509481984K"}},
	{"odp", "odp = \"perhaps\": it takes one of 0|1|auto.", {"perhaps"}},
	{"protocol",
	 "protocol = \"smoke\": it takes one of tupleq|tupleq-copy|rput|rget.",
	 {"smoke"}},
	{"protocol", "it takes one of", {"", "tuple", "tupleq|rget", "RGET"}},
	{"service_thread", "it takes 1 or 0.", {"2", "", "yess"}},
	{"mtu", "it takes 256, 512, 1024, 2048 or 4096", {"1", "300", "768"}},
	{"if_include",
	 "it takes devices, or devices and ports",
	 {"softhca0:", ":1", "softhca0:0", "softhca0:256", "softhca0,", ",softhca0"}},
	{"if_exclude",
	 "it takes devices, or devices and ports",
	 {"softhca0:x", "softhca0:1x", "softhca0:-1", "softhca0:4294967297"}},
};

/* Values that `name` takes. */
static const struct acceptance {
	const char *name, *values[VALUES];
} acceptances[] = {
	{"hold_lanes", {"1", "4", "0x10", "1024"}},
	{"eager_limit", {"8192", "8K", "8k", "8KB", "8192B", "0x2000"}},
	{"pkey", {"0", "0x8001", "0X8001"}},
	{"protocol", {"tupleq", "tupleq-copy", "rput", "rget"}},
	{"service_thread", {"0", "yes", "Disabled", "T"}},
	{"gid_index", {"-1", "0"}},
	{"mtu", {"0", "256", "4096"}},
	{"if_include", {"", "mlx5_0", "mlx5_0:1,mlx5_1:2"}},
};

static bool is_refused(struct tq_params *params, const struct refusal *test, const char *value)
{
	char why[512] = "";

	return tq_param_set(params, test->name, value, why, sizeof(why)) == -EINVAL &&
	       !strncmp(why, test->name, strlen(test->name)) && strstr(why, test->text);
}

static void check_values(struct tq_params *params)
{
	char label[128];

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *test = &refusals[i];

		for (int v = 0; v < VALUES && test->values[v]; v++) {
			snprintf(label, sizeof(label), "%s \"%s\" is refused", test->name,
				 test->values[v]);
			unit_check("params", label, is_refused(params, test, test->values[v]));
		}
	}
	for (size_t i = 0; i < sizeof(acceptances) / sizeof(acceptances[0]); i++) {
		const struct acceptance *test = &acceptances[i];

		for (int v = 0; v < VALUES && test->values[v]; v++) {
			snprintf(label, sizeof(label), "%s \"%s\"", test->name, test->values[v]);
			unit_check("params", label,
				   !tq_param_set(params, test->name, test->values[v], NULL, 0));
		}
	}
}

static void check_name(struct tq_params *params)
{
	char why[64] = "";

	unit_check("params", "a name that no parameter has",
		   tq_param_set(params, "eagr_limit", "8K", why, sizeof(why)) == -ENOENT &&
			   !strcmp(why, "eagr_limit: there is no such parameter."));
}

int main(void)
{
	struct tq_params *params = tq_params_new();

	if (!params)
		return 1;
	check_values(params);
	check_name(params);
	tq_params_free(params);
	return unit_status();
}
