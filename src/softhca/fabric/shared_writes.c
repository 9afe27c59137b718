/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared_writes.c - asks the kernel whether the process has written to memory that it shares with
 * others. Linux 6.11 and later list the shared mappings of a process (PROCMAP_QUERY), note the
 * first write to each page without telling the process (UFFD_FEATURE_WP_ASYNC), and say in one call
 * which pages were written, and forget it (PAGEMAP_SCAN).
 *
 * No function here is a cancellation point, or allocates memory: the caller may be in an allocator.
 */
#define _GNU_SOURCE 1
#include "shared_writes.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "trace.h"

/* Definitions of linux/userfaultfd.h and linux/fs.h that the headers of older kernels lack. */
#define FEATURE_WP_ASYNC (1u << 15)

struct mapping_query {
	uint64_t size, flags, address, start, end, vma_flags, page_size, offset, inode;
	uint32_t dev_major, dev_minor, name_size, build_id_size;
	uint64_t name, build_id;
};
#define QUERY_MAPPING   _IOWR('f', 17, struct mapping_query)
#define QUERY_WRITABLE  0x02u
#define QUERY_SHARED    0x08u
#define QUERY_FROM_HERE 0x10u

struct page_region {
	uint64_t start, end, categories;
};
struct page_scan {
	uint64_t size, flags, start, end, walk_end, regions, nregions, max_pages, category_inverted,
		category_mask, category_anyof_mask, return_mask;
};
#define SCAN_PAGES   _IOWR('f', 16, struct page_scan)
#define SCAN_PROTECT 1u
#define PAGE_WRITTEN 2u

/* Mappings that are watched. Writes to further ones are not seen. */
#define MAPPINGS 256
#define REGIONS  16 /* that one call returns */
#define SAMPLES  8  /* writes that measure their price */

static struct {
	pthread_mutex_t lock;
	bool is_open;
	int uffd, maps, pagemap, statm;
	uint64_t size; /* of the address space (pages), when the mappings were listed */
	uint64_t price;
	unsigned nmappings;
	struct {
		uint64_t start, end;
	} mappings[MAPPINGS];
} here = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int open_at_once(const char *path)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
}

/* Stores the writable shared mapping at an address, or the first one behind it. Returns false if
 * there is none. */
static bool query(uint64_t address, struct mapping_query *mapping)
{
	*mapping = (struct mapping_query){
		.size = sizeof(*mapping),
		.flags = QUERY_FROM_HERE | QUERY_SHARED | QUERY_WRITABLE,
		.address = address,
	};
	return !ioctl(here.maps, QUERY_MAPPING, mapping);
}

static bool watch(uint64_t start, uint64_t end)
{
	struct uffdio_register range = {.range = {start, end - start},
					.mode = UFFDIO_REGISTER_MODE_WP};

	return !ioctl(here.uffd, UFFDIO_REGISTER, &range);
}

/* Returns the number of pages in [start, end) that were written since the last call. */
static uint64_t scan(uint64_t start, uint64_t end)
{
	struct page_region regions[REGIONS] = {{0}};
	struct page_scan scan = {
		.size = sizeof(scan),
		.flags = SCAN_PROTECT,
		.start = start,
		.end = end,
		.regions = (uintptr_t)regions,
		.nregions = REGIONS,
		.category_mask = PAGE_WRITTEN,
		.return_mask = PAGE_WRITTEN,
	};
	uint64_t bytes = 0;
	int n;

	while (scan.start < end && (n = ioctl(here.pagemap, SCAN_PAGES, &scan)) > 0) {
		for (int i = 0; i < n; i++)
			bytes += regions[i].end - regions[i].start;
		scan.start = scan.walk_end;
	}
	return bytes / (uint64_t)getpagesize();
}

static uint64_t cpu_time(void)
{
	struct timespec t;

	syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns the CPU time of writes to SAMPLES pages. */
static uint64_t time_of_writes(volatile char *pages)
{
	uint64_t since = cpu_time();

	for (unsigned i = 0; i < SAMPLES; i++)
		pages[i * (unsigned)getpagesize()] = 1;
	return cpu_time() - since;
}

/* Measures the price of the first write to a page. */
static void measure(void)
{
	size_t length = SAMPLES * (size_t)getpagesize();
	/* Libraries may have replaced mmap() by functions of their own. */
	char *pages = (char *)syscall(SYS_mmap, NULL, length, PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0L);
	uint64_t first, second;

	if (pages == MAP_FAILED)
		return;
	time_of_writes(pages);
	if (watch((uintptr_t)pages, (uintptr_t)pages + length)) {
		scan((uintptr_t)pages, (uintptr_t)pages + length);
		first = time_of_writes(pages);
		second = time_of_writes(pages);
		here.price = first > second ? (first - second) / SAMPLES : 0;
	}
	syscall(SYS_munmap, pages, length);
}

/* Returns true if the kernel has all that is needed. */
static bool open_all(void)
{
	struct uffdio_api api = {.api = UFFD_API, .features = FEATURE_WP_ASYNC};
	struct mapping_query first;

	here.is_open = true;
	here.size = here.nmappings = 0;
	here.uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	here.maps = open_at_once("/proc/self/maps");
	here.pagemap = open_at_once("/proc/self/pagemap");
	here.statm = open_at_once("/proc/self/statm");
	/* The fabric's file is mapped: there is a first mapping. */
	return here.uffd >= 0 && here.pagemap >= 0 && here.statm >= 0 && query(0, &first) &&
	       !ioctl(here.uffd, UFFDIO_API, &api);
}

static void close_all(void)
{
	const int fds[] = {here.uffd, here.maps, here.pagemap, here.statm};

	for (unsigned i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			syscall(SYS_close, fds[i]);
	here.is_open = false;
	here.nmappings = 0;
}

bool shca_shared_writes_are_told(void)
{
	bool told = open_all();

	close_all();
	return told;
}

/* Returns the size of the address space in pages. */
static uint64_t current_size(void)
{
	char text[128];
	ssize_t n = syscall(SYS_pread64, here.statm, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	return strtoull(text, NULL, 10);
}

static bool is_of(const struct mapping_query *mapping, int fd)
{
	struct stat file;

	return fd >= 0 && !fstat(fd, &file) && mapping->inode == file.st_ino &&
	       makedev(mapping->dev_major, mapping->dev_minor) == file.st_dev;
}

/* Lists the shared mappings that the program has made, mappings side by side as one. */
static void list(const struct shca_fabric *fabric)
{
	struct mapping_query mapping = {.end = 0};

	here.nmappings = 0;
	while (here.nmappings < MAPPINGS && query(mapping.end, &mapping)) {
		if (is_of(&mapping, fabric->fd) || is_of(&mapping, shca_trace_fd()) ||
		    !watch(mapping.start, mapping.end))
			continue;
		if (here.nmappings && here.mappings[here.nmappings - 1].end == mapping.start)
			here.nmappings--;
		else
			here.mappings[here.nmappings].start = mapping.start;
		here.mappings[here.nmappings++].end = mapping.end;
	}
}

void shca_shared_writes_watch(const struct shca_fabric *fabric)
{
	uint64_t size;

	pthread_mutex_lock(&here.lock);
	if (!here.is_open && open_all())
		measure();
	size = current_size();
	if (size != here.size)
		list(fabric);
	here.size = size;
	pthread_mutex_unlock(&here.lock);
}

uint64_t shca_shared_writes_count(void)
{
	uint64_t pages = 0;

	pthread_mutex_lock(&here.lock);
	for (unsigned i = 0; i < here.nmappings; i++)
		pages += scan(here.mappings[i].start, here.mappings[i].end);
	pthread_mutex_unlock(&here.lock);
	return pages;
}

uint64_t shca_shared_writes_price(void)
{
	return here.price;
}

void shca_shared_writes_forget(void)
{
	pthread_mutex_init(&here.lock, NULL);
	if (here.is_open)
		close_all();
}
