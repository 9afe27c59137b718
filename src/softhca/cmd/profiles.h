/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profiles.h - finding the profile of an adapter that --profile names.
 */
#ifndef SHCA_PROFILES_H
#define SHCA_PROFILES_H

#include <stddef.h>

/* Stores the path of a profile: a shipped one of that name, or else the file. Returns 0, or -EINVAL
 * with a sentence in err that names the shipped ones. */
int shca_profiles_find(const char *name, char *path, size_t len, char *err, size_t errlen);

#endif
