/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * captures.c - sorting the packets of all processes.
 */
#define _GNU_SOURCE 1
#include "captures.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/pcapng.h"

/* A packet in the capture of a process. */
struct found {
	uint64_t time;
	size_t number; /* in the order of the folder's files and their packets */
	const struct shca_pcapng_packet *block;
};

struct merge {
	struct found *packets;
	size_t n, room;
	struct {
		void *mem;
		size_t len;
	} * files;
	size_t nfiles;
};

static int add_packet(struct merge *merge, const struct shca_pcapng_packet *block)
{
	if (merge->n == merge->room) {
		size_t room = merge->room ? 2 * merge->room : 4096;
		struct found *more = reallocarray(merge->packets, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		merge->packets = more;
		merge->room = room;
	}
	merge->packets[merge->n] = (struct found){
		.time = (uint64_t)block->time_high << 32 | block->time_low,
		.number = merge->n,
		.block = block,
	};
	merge->n++;
	return 0;
}

/* Finds the packets of a file. Its last block may be cut short: the process was killed, or the file
 * system was full. */
static int read_file(struct merge *merge, const char *mem, size_t len)
{
	size_t at = 0;
	int rc = 0;

	while (!rc && len - at >= sizeof(struct shca_pcapng_packet)) {
		const struct shca_pcapng_packet *block = (const void *)(mem + at);

		if (block->length < sizeof(uint32_t) || block->length % 4 ||
		    block->length > len - at)
			break;
		if (block->type == SHCA_PCAPNG_PACKET)
			rc = add_packet(merge, block);
		at += block->length;
	}
	return rc;
}

static int map_file(struct merge *merge, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *mem;

	if (fd < 0 || fstat(fd, &st)) {
		if (fd >= 0)
			close(fd);
		return -errno;
	}
	if (!st.st_size) {
		close(fd);
		return 0;
	}
	mem = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (mem == MAP_FAILED)
		return -errno;
	merge->files[merge->nfiles].mem = mem;
	merge->files[merge->nfiles++].len = (size_t)st.st_size;
	return read_file(merge, mem, (size_t)st.st_size);
}

static int map_files(struct merge *merge, const char *folder)
{
	struct dirent **names;
	char path[PATH_MAX];
	int rc = 0, n = scandir(folder, &names, NULL, versionsort);

	if (n < 0)
		return -errno;
	merge->files = calloc((size_t)n + 1, sizeof(*merge->files));
	if (!merge->files)
		rc = -ENOMEM;
	for (int i = 0; i < n; i++) {
		int len = snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);

		if (!rc && len < (int)sizeof(path) && names[i]->d_name[0] != '.')
			rc = map_file(merge, path);
		free(names[i]);
	}
	free(names);
	return rc;
}

static int earlier(const void *a, const void *b)
{
	const struct found *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return left->number < right->number ? -1 : left->number > right->number;
}

static int write_packets(const struct merge *merge, FILE *out, const struct shca_fabric *fabric)
{
	int rc = shca_pcapng_begin(fileno(out), fabric);

	for (size_t i = 0; !rc && i < merge->n; i++) {
		const struct shca_pcapng_packet *block = merge->packets[i].block;

		if (fwrite(block, block->length, 1, out) != 1)
			rc = -errno;
	}
	if (fflush(out) && !rc)
		rc = -errno;
	return rc;
}

int shca_captures_write(struct shca_parts *parts, const struct shca_fabric *fabric)
{
	struct merge merge = {0};
	int rc = map_files(&merge, parts->folder);

	if (!rc && merge.n)
		qsort(merge.packets, merge.n, sizeof(*merge.packets), earlier);
	if (!rc)
		rc = write_packets(&merge, parts->out, fabric);
	for (size_t i = 0; i < merge.nfiles; i++)
		munmap(merge.files[i].mem, merge.files[i].len);
	free(merge.files);
	free(merge.packets);
	return rc;
}
