/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * render.h - JSON as a table: what --json prints and what a table shows come from the same data.
 */
#ifndef SHCA_RENDER_H
#define SHCA_RENDER_H

#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

enum shca_column_style {
	SHCA_COLUMN_TEXT,
	SHCA_COLUMN_NUMBER, /* to the right */
	SHCA_COLUMN_HEX,
	SHCA_COLUMN_AGE, /* seconds, as 2h03m */
};

struct shca_column {
	const char *title;
	const char *key; /* in the object of a row; one that is missing or null is shown as - */
	enum shca_column_style style;
	const char *help; /* what it shows, for the manual; NULL where that isn't told */
};

/* Prints an array of objects, a line each, under a line of titles. */
void shca_render_table(FILE *out, const json_t *rows, const struct shca_column *columns, size_t n);
/* Prints a document and a newline; on one line if compact. */
void shca_render_json(FILE *out, const json_t *doc, int compact);
/* A string of any bytes: what isn't UTF-8 or printable becomes a question mark. */
json_t *shca_json_text(const char *s);

#endif
