/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * render.c - printing JSON as a table or as text.
 */
#define _GNU_SOURCE 1
#include "render.h"

#include <ctype.h>
#include <string.h>

#define CELL 160

static void age_text(double seconds, char *buf, size_t len)
{
	long long s = (long long)seconds;

	if (s < 60)
		snprintf(buf, len, "%llds", s);
	else if (s < 3600)
		snprintf(buf, len, "%lldm%02llds", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, len, "%lldh%02lldm", s / 3600, s / 60 % 60);
	else
		snprintf(buf, len, "%lldd%02lldh", s / 86400, s / 3600 % 24);
}

static void cell_text(const json_t *value, enum shca_column_style style, char *buf, size_t len)
{
	if (json_is_string(value))
		snprintf(buf, len, "%s", json_string_value(value));
	else if (json_is_boolean(value))
		snprintf(buf, len, "%s", json_is_true(value) ? "yes" : "no");
	else if (style == SHCA_COLUMN_AGE && json_is_number(value))
		age_text(json_number_value(value), buf, len);
	else if (json_is_real(value))
		snprintf(buf, len, "%.1f", json_real_value(value));
	else if (json_is_integer(value))
		snprintf(buf, len, style == SHCA_COLUMN_HEX ? "0x%llx" : "%lld",
			 (long long)json_integer_value(value));
	else
		snprintf(buf, len, "-");
}

static void print_cell(FILE *out, const struct shca_column *column, const char *text, int width,
		       int last)
{
	if (column->style == SHCA_COLUMN_NUMBER || column->style == SHCA_COLUMN_AGE)
		fprintf(out, "%*s", width, text);
	else
		fprintf(out, "%-*s", last ? 0 : width, text);
	fputs(last ? "\n" : "  ", out);
}

static int column_width(const json_t *rows, const struct shca_column *column)
{
	size_t width = strlen(column->title), i;
	char text[CELL];
	json_t *row;

	json_array_foreach(rows, i, row)
	{
		cell_text(json_object_get(row, column->key), column->style, text, sizeof(text));
		if (strlen(text) > width)
			width = strlen(text);
	}
	return (int)width;
}

void shca_render_table(FILE *out, const json_t *rows, const struct shca_column *columns, size_t n)
{
	int widths[32];
	char text[CELL];
	json_t *row;
	size_t i;

	for (size_t c = 0; c < n; c++)
		widths[c] = column_width(rows, &columns[c]);
	for (size_t c = 0; c < n; c++)
		print_cell(out, &columns[c], columns[c].title, widths[c], c + 1 == n);
	json_array_foreach(rows, i, row)
	{
		for (size_t c = 0; c < n; c++) {
			cell_text(json_object_get(row, columns[c].key), columns[c].style, text,
				  sizeof(text));
			print_cell(out, &columns[c], text, widths[c], c + 1 == n);
		}
	}
}

void shca_render_json(FILE *out, const json_t *doc, bool compact)
{
	json_dumpf(doc, out, compact ? JSON_COMPACT : JSON_INDENT(2));
	fputc('\n', out);
	fflush(out);
}

json_t *shca_json_text(const char *s)
{
	char plain[256];
	size_t n = 0;

	/* Control characters would move the cursor; jansson judges what is beyond ASCII. */
	for (; n < sizeof(plain) - 1 && s[n]; n++)
		plain[n] = iscntrl((unsigned char)s[n]) ? '?' : s[n];
	plain[n] = '\0';
	for (int pass = 0; pass < 2; pass++) {
		json_t *j = json_string(plain);

		if (j)
			return j;
		for (char *p = plain; *p; p++) {
			if ((unsigned char)*p > 0x7e)
				*p = '?';
		}
	}
	return json_null();
}
