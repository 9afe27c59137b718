/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts.c - making and removing the folder of the processes' files.
 */
#define _GNU_SOURCE 1
#include "parts.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/say.h"

static void remove_folder(const char *folder)
{
	struct dirent *entry;
	DIR *d = opendir(folder);

	while (d && (entry = readdir(d)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	rmdir(folder);
}

int shca_parts_begin(struct shca_parts *parts, const char *what, const char *file, char *err,
		     size_t errlen)
{
	char *folder = NULL;
	int rc;

	/* The folder comes first: the file of another run that is under way must stay. */
	if (asprintf(&folder, "%s.parts", file) < 0)
		return shca_error_text(-ENOMEM, err, errlen, "There is no memory for a %s.", what);
	rc = mkdir(folder, 0700) ? -errno : 0;
	if (rc == -EEXIST)
		shca_error_text(rc, err, errlen,
				"%s is there already: another run may be writing its %s there, "
				"or one was killed. Name another file, or remove that folder.",
				folder, what);
	else if (rc)
		shca_error_text(rc, err, errlen, "The folder %s for a %s can't be made (%s).",
				folder, what, strerror(-rc));
	if (!rc && (!realpath(folder, parts->folder) || !(parts->out = fopen(file, "we")))) {
		rc = shca_error_text(-errno, err, errlen, "The %s can't be written to %s (%s).",
				     what, file, strerror(errno));
		rmdir(folder);
	}
	if (!rc)
		parts->what = what;
	free(folder);
	return rc;
}

void shca_parts_drop(struct shca_parts *parts)
{
	if (!parts->what)
		return;
	fclose(parts->out);
	remove_folder(parts->folder);
	parts->what = NULL;
}

int shca_parts_link(const struct shca_parts *parts, const char *dir, const char *link)
{
	char path[PATH_MAX];

	if (!parts->what)
		return 0;
	snprintf(path, sizeof(path), "%s/%s", dir, link);
	return symlink(parts->folder, path) ? -errno : 0;
}

int shca_parts_end(struct shca_parts *parts, int rc, char *err, size_t errlen)
{
	bool failed = ferror(parts->out);

	if ((fclose(parts->out) || failed) && !rc)
		rc = -EIO;
	if (!rc)
		remove_folder(parts->folder);
	else
		shca_error_text(rc, err, errlen,
				"The whole %s can't be written (%s). The records of the "
				"processes stay in %s.",
				parts->what, strerror(-rc), parts->folder);
	parts->what = NULL;
	return rc;
}
