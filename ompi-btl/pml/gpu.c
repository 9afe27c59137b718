/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>

/* CUDA's and HIP's numbers for what can be asked. */
enum { MEMORY_TYPE = 2, IS_MANAGED = 8 };

/* cuPointerGetAttribute() and hipPointerGetAttribute(); not 0: the pointer is none of theirs. */
typedef int (*ask_fn)(void *data, int attribute, uintptr_t ptr);

struct library {
	const char *name, *function;
	unsigned host; /* the MEMORY_TYPE of memory that is not on a GPU; larger ones are */
};

/* HIP changed its numbers with its version 6. */
static const struct library libraries[] = {
	{"libcuda.so.1", "cuPointerGetAttribute", 1},
	{"libamdhip64.so.7", "hipPointerGetAttribute", 1},
	{"libamdhip64.so.6", "hipPointerGetAttribute", 1},
	{"libamdhip64.so.5", "hipPointerGetAttribute", 0},
};

enum { LIBRARIES = sizeof(libraries) / sizeof(libraries[0]) };

_Atomic uintptr_t tupleq_host_regions[TUPLEQ_REGIONS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ask_fn ask[LIBRARIES]; /* NULL: not loaded */
static bool any;              /* of them is */
static unsigned long long loads;

static int first_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(unsigned long long *)arg = info->dlpi_adds;
	return 1;
}

/* Called with the lock. What is found stays loaded: the handle is kept. */
static void find_libraries(void)
{
	unsigned long long now = 0;
	void *handle;
	unsigned i;

	dl_iterate_phdr(first_object, &now);
	if (now == loads)
		return;
	loads = now;
	for (i = 0; i < LIBRARIES; i++) {
		handle = ask[i] ? NULL : dlopen(libraries[i].name, RTLD_LAZY | RTLD_NOLOAD);
		if (!handle)
			continue;
		ask[i] = (ask_fn)dlsym(handle, libraries[i].function);
		any = any || ask[i];
	}
	for (i = 0; any && i < TUPLEQ_REGIONS; i++)
		tupleq_host_regions[i] = UINTPTR_MAX;
}

static bool is_theirs(const struct library *library, ask_fn asked, uintptr_t ptr)
{
	unsigned type = 0, managed = 0;

	if (asked(&type, MEMORY_TYPE, ptr))
		return false;
	/* Managed memory moves between host and GPU, also while the adapter would use it. */
	return type > library->host || (!asked(&managed, IS_MANAGED, ptr) && managed);
}

bool tupleq_gpu_ask(const void *addr)
{
	uintptr_t ptr = (uintptr_t)addr, region = ptr >> TUPLEQ_REGION_BITS;
	ask_fn asked[LIBRARIES];
	unsigned i;

	pthread_mutex_lock(&lock);
	find_libraries();
	for (i = 0; i < LIBRARIES; i++)
		asked[i] = ask[i];
	if (!any)
		tupleq_host_regions[region % TUPLEQ_REGIONS] = region;
	pthread_mutex_unlock(&lock);
	for (i = 0; i < LIBRARIES; i++) {
		if (asked[i] && is_theirs(&libraries[i], asked[i], ptr))
			return true;
	}
	return false;
}
