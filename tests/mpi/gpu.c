/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call refuses buffers in a GPU's memory with an error, at all lengths, and nothing touches
 * them. Other buffers still work. The GPU is a fake: its driver reports some memory as the GPU's
 * (fake_cuda.c, fake_hsa.c).
 *
 * gpu [rocm] [late]: the program loads the driver before MPI_Init. late: after messages have been
 * exchanged; the GPU's memory then lies where host memory was.
 */
#include <dlfcn.h>
#include <limits.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "fake_gpu.h"

enum { ROOM = 8 << 20, TAG = 7 };

static const int lengths[] = {1, 200, 6000, 300000};

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* Memory of each kind; the first can't be touched. */
static char *memory[FAKE_NONE];

/* Loads a fake driver and gives it memory of each kind. at: the address of the GPU's, or NULL */
static void load_driver(const char *library, void *at)
{
	void (*fake)(enum fake_kind kind, void *addr, size_t len);
	char path[PATH_MAX];
	void *handle;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 40);

	t_true(n > 0, "/proc/self/exe can't be read");
	path[n] = '\0';
	snprintf(strrchr(path, '/'), 40, "/.libs/%s", library);
	handle = dlopen(path, RTLD_NOW);
	t_true(handle, "%s", dlerror());
	*(void **)&fake = dlsym(handle, "fake_memory");
	t_true(fake, "it is not the fake one");
	for (int kind = 0; kind < FAKE_NONE; kind++) {
		memory[kind] = mmap(kind == FAKE_DEVICE ? at : NULL, ROOM,
				    kind == FAKE_DEVICE ? PROT_NONE : PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		t_true(memory[kind] != MAP_FAILED, "no memory");
		fake(kind, memory[kind], ROOM);
	}
	t_true(!at || memory[FAKE_DEVICE] == at, "the GPU's memory lies elsewhere");
}

static void exchange(char *buf, int len)
{
	const struct t_msg m = {.src = 0, .tag = TAG, .seq = (unsigned)len};
	MPI_Status status;

	if (t_rank == 0) {
		t_fill(buf, (size_t)len, m);
		MPI_Send(buf, len, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
	} else if (t_rank == 1) {
		memset(buf, 0, (size_t)len);
		MPI_Recv(buf, len, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &status);
		t_verify(buf, (size_t)len, m);
		t_status(&status, 0, TAG, (size_t)len);
	}
}

/* Exchanges several messages, so that a tuple gets its queue. */
static void works(const char *what, char *buf)
{
	t_begin("%s", what);
	for (int i = 0; i < 12; i++)
		for (size_t l = 0; l < LENGTHS; l++)
			exchange(buf, lengths[l]);
	t_end();
}

static void is_refused(int rc, const char *call)
{
	int class = MPI_SUCCESS;

	MPI_Error_class(rc, &class);
	t_true(class == MPI_ERR_BUFFER, "%s gives class %d", call, class);
}

/* Tries all calls. No other rank receives or sends these messages, because every call is
 * refused. */
static void refuse_calls(char *buf, int count, MPI_Datatype type)
{
	static char attached[400000 + MPI_BSEND_OVERHEAD];
	int peer = !t_rank, size;
	MPI_Request request;
	void *detached;

	is_refused(MPI_Send(buf, count, type, peer, TAG, MPI_COMM_WORLD), "MPI_Send");
	is_refused(MPI_Ssend(buf, count, type, peer, TAG, MPI_COMM_WORLD), "MPI_Ssend");
	is_refused(MPI_Isend(buf, count, type, peer, TAG, MPI_COMM_WORLD, &request), "MPI_Isend");
	is_refused(MPI_Recv(buf, count, type, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
		   "MPI_Recv");
	is_refused(MPI_Irecv(buf, count, type, peer, TAG, MPI_COMM_WORLD, &request), "MPI_Irecv");
	MPI_Buffer_attach(attached, sizeof(attached));
	is_refused(MPI_Bsend(buf, count, type, peer, TAG, MPI_COMM_WORLD), "MPI_Bsend");
	MPI_Buffer_detach(&detached, &size);
	MPI_Send_init(buf, count, type, peer, TAG, MPI_COMM_WORLD, &request);
	is_refused(MPI_Start(&request), "MPI_Start of a send");
	MPI_Request_free(&request);
	MPI_Recv_init(buf, count, type, peer, TAG, MPI_COMM_WORLD, &request);
	is_refused(MPI_Start(&request), "MPI_Start of a receive");
	MPI_Request_free(&request);
}

static void refused(const char *what, char *buf)
{
	MPI_Datatype gaps;

	t_begin("%s", what);
	MPI_Type_vector(3, 10, 20, MPI_INT, &gaps);
	MPI_Type_commit(&gaps);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (t_rank < 2) {
		for (size_t l = 0; l < LENGTHS; l++)
			refuse_calls(buf + ROOM / 2, lengths[l], MPI_BYTE);
		refuse_calls(buf, 5, gaps);
	}
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	MPI_Type_free(&gaps);
	t_end();
}

/* Checks that a message that a matched probe took outlives receives that are refused. */
static void taken(char *gpu, char *host)
{
	const struct t_msg m = {.src = 0, .tag = TAG, .seq = 1};
	MPI_Request request;
	MPI_Message message;
	MPI_Comm comm;

	t_begin("a message that was taken");
	/* The context id can be used again afterwards. */
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (size_t l = 0; l < LENGTHS && t_rank < 2; l++) {
		int len = lengths[l];

		if (!t_rank) {
			t_fill(host, (size_t)len, m);
			MPI_Send(host, len, MPI_BYTE, 1, TAG, comm);
			continue;
		}
		MPI_Mprobe(0, TAG, comm, &message, MPI_STATUS_IGNORE);
		is_refused(MPI_Mrecv(gpu, len, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
		is_refused(MPI_Imrecv(gpu, len, MPI_BYTE, &message, &request), "MPI_Imrecv");
		t_true(message != MPI_MESSAGE_NULL, "the message is gone");
		memset(host, 0, (size_t)len);
		MPI_Mrecv(host, len, MPI_BYTE, &message, MPI_STATUS_IGNORE);
		t_verify(host, (size_t)len, m);
		t_true(message == MPI_MESSAGE_NULL, "the message is still there");
	}
	MPI_Comm_free(&comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_free(&comm);
	t_end();
}

static void empty(char *buf)
{
	t_begin("empty messages have no memory");
	for (int i = 0; i < 12; i++) {
		if (t_rank == 0)
			MPI_Send(buf, 0, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
		else if (t_rank == 1)
			MPI_Recv(buf, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	t_end();
}

int main(int argc, char **argv)
{
	bool late = argc > 1 && !strcmp(argv[argc - 1], "late");
	bool rocm = argc > 1 && !strcmp(argv[1], "rocm");
	const char *library = rocm ? "libhsa-runtime64.so.1" : "libcuda.so.1";
	char *host, *gone;

	if (!late)
		load_driver(library, NULL);
	t_init(&argc, &argv, 2);
	if (t_counter("pml_tupleq_sent_direct") < 0) {
		t_skip("gpu", "with another MPI a GPU's memory may work, or crash");
		return t_finish();
	}
	host = t_alloc(300000);
	works(late ? "before the driver is loaded" : "host memory first", host);
	if (late) {
		gone = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		t_true(gone != MAP_FAILED, "no memory");
		works("memory that goes before", gone);
		works("memory that goes before, in the midst", gone + ROOM / 2);
		munmap(gone, ROOM);
		load_driver(library, gone);
	}
	refused("a GPU's memory", memory[FAKE_DEVICE]);
	works("host memory", host);
	if (rocm)
		works("managed memory", memory[FAKE_MANAGED]);
	else
		refused("managed memory", memory[FAKE_MANAGED]);
	works("pinned host memory", memory[FAKE_PINNED]);
	empty(memory[FAKE_DEVICE]);
	taken(memory[FAKE_DEVICE], host);
	free(host);
	return t_finish();
}
