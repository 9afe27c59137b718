/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * render.h - JSON as a table: --json prints, and a table shows, the same data.
 */
#ifndef SHCA_RENDER_H
#define SHCA_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

enum shca_column_style {
	SHCA_COLUMN_TEXT,
	SHCA_COLUMN_NUMBER, /* aligned to the right */
	SHCA_COLUMN_HEX,
	SHCA_COLUMN_AGE, /* seconds, as 2h03m */
};

struct shca_column {
	const char *title;
	const char *key; /* key in the object of a row; missing or null is shown as - */
	enum shca_column_style style;
	const char *help; /* explanation for the manual, or NULL */
};

/* Prints an array of objects, a line each, under a line of titles. There are at most 32 columns. */
void shca_render_table(FILE *out, const json_t *rows, const struct shca_column *columns, size_t n);
/* Prints a document and a newline; on one line if compact. */
void shca_render_json(FILE *out, const json_t *doc, bool compact);
/* Makes a JSON string of up to 255 bytes; the rest is left out. Bytes that aren't UTF-8 or
 * printable become question marks. */
json_t *shca_json_text(const char *s);

#endif
