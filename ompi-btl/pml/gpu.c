/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>

#define NO_PAGE UINTPTR_MAX

/* ---- CUDA ---- */

/* The driver's numbers of two attributes, and its type of host memory. */
enum { CU_MEMORY_TYPE = 2, CU_IS_MANAGED = 8, CU_HOST = 1 };

static int (*cu_pointer_get_attribute)(void *data, int attribute, unsigned long long ptr);

static bool is_cuda(uintptr_t ptr)
{
	unsigned type = 0, managed = 0;

	if (cu_pointer_get_attribute(&type, CU_MEMORY_TYPE, ptr))
		return false; /* not a pointer of the driver */
	/* Managed memory moves between host and GPU at any time, even while the adapter uses it. */
	return type != CU_HOST ||
	       (!cu_pointer_get_attribute(&managed, CU_IS_MANAGED, ptr) && managed);
}

/* ---- ROCm ---- */

/*
 * Queries go to ROCm's lowest layer. HIP would initialise itself before the program has chosen its
 * devices, and would record an error for each pointer that isn't its own.
 */
enum { HSA_UNKNOWN = 0, HSA_LOCKED = 2, HSA_AGENT_DEVICE = 17, HSA_GPU = 1 };

struct hsa_pointer_info {
	uint32_t size; /* of this struct, as the caller declares it */
	int type;
	void *agent_base, *host_base;
	size_t bytes;
	void *user_data;
	uint64_t owner;
	uint32_t flags;
};

static int (*hsa_pointer_info)(const void *ptr, struct hsa_pointer_info *info,
			       void *(*alloc)(size_t), uint32_t *nagents, uint64_t **agents);
static int (*hsa_agent_get_info)(uint64_t agent, int attribute, void *value);

static bool is_rocm(uintptr_t ptr)
{
	struct hsa_pointer_info info = {.size = sizeof(info)};
	int device = 0;

	/* An error if the runtime isn't initialised: no GPU memory exists then. */
	if (hsa_pointer_info((const void *)ptr, &info, NULL, NULL, NULL))
		return false;
	/* The program's own memory may be locked for the GPU. */
	if (info.type == HSA_UNKNOWN || info.type == HSA_LOCKED)
		return false;
	return !hsa_agent_get_info(info.owner, HSA_AGENT_DEVICE, &device) && device == HSA_GPU;
}

/* ---- the libraries that the program has loaded ---- */

static const struct library {
	const char *name;
	struct {
		const char *name;
		void *fn;
	} functions[2];
	bool (*is_gpu_pointer)(uintptr_t ptr);
} libraries[] = {
	{"libcuda.so.1", {{"cuPointerGetAttribute", &cu_pointer_get_attribute}}, is_cuda},
	{"libhsa-runtime64.so.1",
	 {{"hsa_amd_pointer_info", &hsa_pointer_info}, {"hsa_agent_get_info", &hsa_agent_get_info}},
	 is_rocm},
};

enum { LIBRARIES = sizeof(libraries) / sizeof(libraries[0]) };

uintptr_t mca_pml_tupleq_host_pages[TUPLEQ_HOST_PAGES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded[LIBRARIES], any_loaded; /* of `libraries`; guarded by the lock */
static bool caches_pages;
static unsigned long long loads; /* objects that had ever been loaded at the last look */

static int first_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(unsigned long long *)arg = info->dlpi_adds;
	return 1;
}

/* Finds the functions of a library that is loaded. Keeps the handle, so that the library stays. */
static bool load(const struct library *library)
{
	void *handle = dlopen(library->name, RTLD_LAZY | RTLD_NOLOAD), *fn;

	if (!handle)
		return false;
	for (int i = 0; i < 2 && library->functions[i].name; i++) {
		fn = dlsym(handle, library->functions[i].name);
		if (!fn)
			return false;
		*(void **)library->functions[i].fn = fn;
	}
	return true;
}

/* Looks for libraries that have been loaded since the last call. Called with the lock held. */
static void find_libraries(void)
{
	unsigned long long now = 0;

	dl_iterate_phdr(first_object, &now);
	if (now == loads)
		return;
	loads = now;
	for (int i = 0; i < LIBRARIES; i++) {
		loaded[i] = loaded[i] || load(&libraries[i]);
		any_loaded = any_loaded || loaded[i];
	}
	if (any_loaded)
		mca_pml_tupleq_gpu_invalidate(0, UINTPTR_MAX);
}

bool mca_pml_tupleq_gpu_query(const void *addr)
{
	uintptr_t ptr = (uintptr_t)addr, page = ptr >> TUPLEQ_PAGE_BITS;
	bool queries[LIBRARIES], is_gpu = false;

	pthread_mutex_lock(&lock);
	find_libraries();
	for (int i = 0; i < LIBRARIES; i++)
		queries[i] = loaded[i];
	if (caches_pages && !any_loaded)
		__atomic_store_n(&mca_pml_tupleq_host_pages[page % TUPLEQ_HOST_PAGES], page,
				 __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < LIBRARIES && !is_gpu; i++)
		is_gpu = queries[i] && libraries[i].is_gpu_pointer(ptr);
	return is_gpu;
}

void mca_pml_tupleq_gpu_cache_pages(void)
{
	pthread_mutex_lock(&lock);
	caches_pages = true;
	pthread_mutex_unlock(&lock);
}

/* Not instrumented: a thread's stack is unmapped after ThreadSanitizer has ended the thread. */
__attribute__((no_sanitize("thread"))) void mca_pml_tupleq_gpu_invalidate(uintptr_t base,
									  uintptr_t bound)
{
	uintptr_t first = base >> TUPLEQ_PAGE_BITS, last = bound >> TUPLEQ_PAGE_BITS, page;

	for (int i = 0; i < TUPLEQ_HOST_PAGES; i++) {
		page = __atomic_load_n(&mca_pml_tupleq_host_pages[i], __ATOMIC_RELAXED);
		if (page >= first && page <= last)
			__atomic_store_n(&mca_pml_tupleq_host_pages[i], NO_PAGE, __ATOMIC_RELAXED);
	}
}
