/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profiles.c - finding the profile of an adapter.
 */
#define _GNU_SOURCE 1
#include "profiles.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procfs.h"

#define SUFFIX ".profile"

/* Stores the folder of the shipped profiles: beside the launcher, in an installation or in a build
 * tree, or where it was configured to be. Returns false if there is none. */
static bool find_folder(char *folder, size_t len)
{
	static const char *const below[] = {"../share/softhca/profiles",
					    "../../share/softhca/profiles"};
	char own[PATH_MAX];

	if (shca_procfs_own_folder(own, sizeof(own))) {
		for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
			if (snprintf(folder, len, "%s/%s", own, below[i]) < (int)len &&
			    access(folder, F_OK) == 0)
				return true;
		}
	}
	return snprintf(folder, len, "%s", SHCA_PROFILEDIR) < (int)len && access(folder, F_OK) == 0;
}

static int is_profile(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name), suffix = strlen(SUFFIX);

	return len > suffix && strcmp(entry->d_name + len - suffix, SUFFIX) == 0;
}

/* Writes the names of the shipped profiles, with commas between them. */
static void list_names(const char *folder, char *buf, size_t len)
{
	struct dirent **entries = NULL;
	int n = scandir(folder, &entries, is_profile, alphasort);
	size_t used = 0;

	buf[0] = '\0';
	for (int i = 0; i < n; i++) {
		if (used < len)
			used += (size_t)snprintf(buf + used, len - used, "%s%.*s", used ? ", " : "",
						 (int)(strlen(entries[i]->d_name) - strlen(SUFFIX)),
						 entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
}

int shca_profiles_find(const char *name, char *path, size_t len, char *err, size_t errlen)
{
	char folder[PATH_MAX], names[256];
	bool shipped = find_folder(folder, sizeof(folder));

	if (shipped && !strchr(name, '/') &&
	    snprintf(path, len, "%s/%s" SUFFIX, folder, name) < (int)len && access(path, F_OK) == 0)
		return 0;
	if (access(name, F_OK) == 0 && snprintf(path, len, "%s", name) < (int)len)
		return 0;
	if (shipped)
		list_names(folder, names, sizeof(names));
	snprintf(err, errlen, "There is no profile \"%s\": name a file, or one of %s.", name,
		 shipped ? names : "the shipped ones, which aren't in " SHCA_PROFILEDIR);
	return -EINVAL;
}
