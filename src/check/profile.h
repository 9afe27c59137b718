/* SPDX-License-Identifier: BSD-3-Clause */
/* profile.h - the file from which softhca makes an adapter like this one: softhca run --profile. */
#ifndef TUPLEQ_CHECK_PROFILE_H
#define TUPLEQ_CHECK_PROFILE_H

#include <stdbool.h>
#include <stdio.h>

#include "port.h"
#include "report.h"

/* Makes the file, before there is anything to write. Returns NULL with errno, EEXIST if there is
 * such a file. */
FILE *profile_create(const char *path);

/* Writes the limits and the measured prices of a port, which is the one that was reported last. */
void profile_write(FILE *file, const struct report *report, const struct port *port);

/* Closes the file. Removes it and returns false if it could not be written, or is to go. */
bool profile_close(FILE *file, const char *path, bool keep);

#endif
