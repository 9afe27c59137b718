/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * say.c - a sentence in one write(), so that other output doesn't get in between.
 */
#include "say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cancel.h"
#include "text.h"

void shca_say(const char *format, ...)
{
	int error = errno, cancel = shca_cancel_hold();
	char line[640], *end = shca_put_text(line, "softhca: ");
	va_list arguments;

	va_start(arguments, format);
	/* There stays room for a line feed. */
	vsnprintf(end, sizeof(line) - (size_t)(end - line) - 1, format, arguments);
	va_end(arguments);
	end = shca_put_text(line + strlen(line), "\n");
	while (write(STDERR_FILENO, line, (size_t)(end - line)) < 0 && errno == EINTR)
		;
	shca_cancel_restore(cancel);
	errno = error;
}

int shca_error_text(int rc, char *err, size_t errlen, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	if (errlen)
		vsnprintf(err, errlen, format, ap);
	va_end(ap);
	return rc;
}
