/* SPDX-License-Identifier: BSD-3-Clause */
#include "segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static void file_name(char *file, size_t size, uint64_t name)
{
	snprintf(file, size, "/tupleq-coll-%016" PRIx64, name);
}

size_t tupleq_segment_size(const struct tupleq_shape *shape)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = tupleq_entered_offset(shape, shape->nlocal);

	return (bytes + page - 1) / page * page;
}

static int map(int fd, size_t size, struct tupleq_segment **segment)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (mem == MAP_FAILED)
		return -errno;
	*segment = mem;
	return 0;
}

int tupleq_segment_create(const struct tupleq_shape *shape, uint64_t number, uint64_t *name,
			  struct tupleq_segment **segment)
{
	size_t size = tupleq_segment_size(shape);
	struct tupleq_segment *s = NULL;
	char file[64];
	int fd, rc, i;

	if (getrandom(name, sizeof(*name), 0) != (ssize_t)sizeof(*name))
		return -errno;
	file_name(file, sizeof(file), *name);
	fd = shm_open(file, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0)
		return -errno;
	/* Where memory is short, an error now and not SIGBUS later. */
	rc = -posix_fallocate(fd, 0, (off_t)size);
	if (!rc)
		rc = map(fd, size, &s);
	close(fd);
	if (rc) {
		shm_unlink(file);
		return rc;
	}
	atomic_init(&s->release.word, number);
	for (i = 0; i < TUPLEQ_SLOTS; i++)
		atomic_init(&s->slots[i].word, number);
	for (i = 0; i < shape->nlocal; i++)
		atomic_init(&tupleq_entered(s, shape, i)->word, number);
	*segment = s;
	return 0;
}

int tupleq_segment_attach(const struct tupleq_shape *shape, uint64_t name,
			  struct tupleq_segment **segment)
{
	size_t size = tupleq_segment_size(shape);
	struct stat st;
	char file[64];
	int fd, rc;

	file_name(file, sizeof(file), name);
	fd = shm_open(file, O_RDWR, 0);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		rc = -errno;
	else if (st.st_uid != geteuid() || st.st_size != (off_t)size)
		rc = -EPERM;
	else
		rc = map(fd, size, segment);
	close(fd);
	return rc;
}

void tupleq_segment_unlink(uint64_t name)
{
	char file[64];

	file_name(file, sizeof(file), name);
	shm_unlink(file);
}

void tupleq_segment_detach(const struct tupleq_shape *shape, struct tupleq_segment *segment)
{
	munmap(segment, tupleq_segment_size(shape));
}
