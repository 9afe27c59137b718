/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_reset.c - softhca reset: counters back to zero.
 */
#define _GNU_SOURCE 1
#include <argp.h>

#include "cmd.h"
#include "fabric/counters.h"
#include "fabrics.h"
#include "fail.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **which = state->input;

	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	if (*which)
		argp_error(state, "more than one fabric");
	*which = arg;
	return 0;
}

int shca_cmd_reset(int argc, char **argv)
{
	static const struct argp argp = {.parser = parse,
					 .args_doc = "[FABRIC|PID]",
					 .doc = "Sets all counters of a fabric to zero."};
	char dir[SHCA_DIR_LEN], err[1024];
	const char *which = NULL;
	struct shca_fabric fabric;

	argp_parse(&argp, argc, argv, 0, NULL, &which);
	if (shca_fabrics_pick(which, dir, sizeof(dir), err, sizeof(err)) ||
	    shca_fabric_attach(dir, &fabric, err, sizeof(err)))
		return shca_fail(SHCA_EXIT_FAILURE, "%s", err);
	for (unsigned h = 0; h < fabric.hdr->nhcas; h++)
		shca_counters_reset(&fabric, &fabric.hdr->hcas[h]);
	shca_fabric_detach(&fabric);
	return 0;
}
