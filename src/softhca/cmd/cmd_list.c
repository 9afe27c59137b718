/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_list.c - softhca list: the fabrics of this user.
 */
#define _GNU_SOURCE 1
#include <argp.h>
#include <string.h>

#include "cmd.h"
#include "fabrics.h"
#include "fail.h"
#include "render.h"
#include "snapshot.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	bool *json = state->input;

	(void)arg;
	if (key != 'j')
		return ARGP_ERR_UNKNOWN;
	*json = true;
	return 0;
}

/* Returns the row of a fabric, or NULL if the fabric ended meanwhile. */
static json_t *describe(const struct shca_listing *listing)
{
	struct shca_fabric fabric;
	char err[256];
	json_t *o;

	if (shca_fabric_attach(listing->dir, &fabric, err, sizeof(err)))
		return NULL;
	o = shca_snapshot_fabric(&fabric);
	json_object_set_new(o, "state", json_string(listing->held ? "running" : "orphaned"));
	shca_fabric_detach(&fabric);
	return o;
}

int shca_cmd_list(int argc, char **argv)
{
	static const struct shca_column columns[] = {
		{"FABRIC", "name", SHCA_COLUMN_TEXT, NULL},
		{"PID", "pid", SHCA_COLUMN_NUMBER, NULL},
		{"STATE", "state", SHCA_COLUMN_TEXT, NULL},
		{"NODES", "nodes", SHCA_COLUMN_NUMBER, NULL},
		{"PROCS", "processes", SHCA_COLUMN_NUMBER, NULL},
		{"AGE", "age", SHCA_COLUMN_AGE, NULL},
		{"COMMAND", "command", SHCA_COLUMN_TEXT, NULL},
	};
	static const struct argp_option options[] = {
		{"json", 'j', NULL, 0, "print JSON", 0},
		{0},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Shows the fabrics of this user, and removes what is left of dead ones.\v"
		       "An orphaned fabric is one whose launcher was killed while processes are "
		       "still "
		       "attached."};
	struct shca_listings listings;
	bool json = false;
	json_t *rows;
	int rc;

	argp_parse(&argp, argc, argv, 0, NULL, &json);
	rc = shca_fabrics_list(&listings);
	if (rc)
		return shca_fail(SHCA_EXIT_FAILURE, "The folder of the fabrics can't be read: %s.",
				 strerror(-rc));
	rows = json_array();
	for (size_t i = 0; i < listings.n; i++) {
		json_t *o = describe(&listings.list[i]);

		if (o)
			json_array_append_new(rows, o);
	}
	if (json)
		shca_render_json(stdout, rows, false);
	else
		shca_render_table(stdout, rows, columns, sizeof(columns) / sizeof(columns[0]));
	json_decref(rows);
	shca_fabrics_free(&listings);
	return 0;
}
