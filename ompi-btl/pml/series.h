/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What depends on the series of Open MPI. Everything of Open MPI that the components use is
 * included here. What differs between the series is in series_4_1.h and series_5_0.h; what leans on
 * how both work inside is a function here.
 */
#ifndef TUPLEQ_PML_SERIES_H
#define TUPLEQ_PML_SERIES_H

#include "ompi_config.h"

#include "ompi/attribute/attribute.h"
#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/errhandler/errcode-internal.h"
#include "ompi/errhandler/errcode.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_tags.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/hook/base/base.h"
#include "ompi/mca/hook/hook.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/message/message.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"
#include "opal/class/opal_free_list.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_enum.h"
#include "opal/mca/rcache/base/base.h"
#include "opal/mca/rcache/rcache.h"
#include "opal/runtime/opal_params.h"
#include "opal/runtime/opal_progress.h"
#include "opal/util/arch.h"
#include "opal/util/os_path.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"
#include "opal/util/sys_limits.h"

#if OMPI_MAJOR_VERSION == 4 && OMPI_MINOR_VERSION == 1
#include "series_4_1.h"
#elif OMPI_MAJOR_VERSION == 5 && OMPI_MINOR_VERSION == 0
#include "series_5_0.h"
#else
#error "the components are for Open MPI 4.1 and 5.0: the layout of its structures differs between series"
#endif

/* Publishes data under the component's name, for all processes that know of this one. */
static inline int series_modex_send(const mca_base_component_t *component, const void *data,
				    size_t len)
{
	int rc;

	OPAL_MODEX_SEND(rc, SERIES_MODEX_GLOBAL, component, data, len);
	return rc;
}

/* Fetches what the process has published under the component's name. The caller frees it. */
static inline int series_modex_recv(const mca_base_component_t *component, const ompi_proc_t *proc,
				    void **data, size_t *len)
{
	uint8_t *bytes = NULL;
	int rc;

	OPAL_MODEX_RECV(rc, component, &proc->super.proc_name, &bytes, len);
	*data = bytes;
	return rc;
}

/* Of those MPI_Init adds to the PML; it doesn't look at the result. */
static inline bool series_is_predefined(const ompi_communicator_t *comm)
{
	return comm == &ompi_mpi_comm_world.comm || comm == &ompi_mpi_comm_self.comm;
}

/* In the form of Open MPI's texts, which have the name of the class first. */
#define SERIES_PEER_ERROR                                                                  \
	"TUPLEQ_ERR_PEER: a process that the operation needs has died, or the connection " \
	"to it has failed"

/* Open MPI 4.1 has no error class for what becomes of an operation whose peer has failed. Both
 * components add one, which is the first one's: by its text it is found. Returns its error code,
 * whose class MPI_Error_class() gives: of a class itself Open MPI takes that for unknown. */
static inline int series_peer_error(void)
{
	for (int i = ompi_mpi_errcode_lastpredefined + 1; i <= ompi_mpi_errcode_lastused; i++) {
		const ompi_mpi_errcode_t *error =
			(const ompi_mpi_errcode_t *)opal_pointer_array_get_item(&ompi_mpi_errcodes,
										i);

		if (error && error->code == i && !strcmp(error->errstring, SERIES_PEER_ERROR))
			return i;
	}
	return MPI_ERR_INTERN;
}

/* For MPI_COMM_WORLD, before there are users. As MPI_Add_error_class() and MPI_Add_error_code(),
 * which can't be called in MPI_Init. */
static inline void series_add_peer_error(void)
{
	static const char text[MPI_MAX_ERROR_STRING] = SERIES_PEER_ERROR;
	int class, code;

	if (series_peer_error() != MPI_ERR_INTERN)
		return;
	class = ompi_mpi_errclass_add();
	code = ompi_mpi_errcode_add(class);
	ompi_mpi_errnum_add_string(class, text, sizeof(text));
	ompi_mpi_errnum_add_string(code, text, sizeof(text));
	ompi_attr_set_fint(COMM_ATTR, &ompi_mpi_comm_world.comm,
			   &ompi_mpi_comm_world.comm.c_keyhash, MPI_LASTUSEDCODE,
			   ompi_mpi_errcode_lastused, true);
}

/* Ends the job; why has been said. */
static inline void series_abort(void)
{
	ompi_rte_abort(1, NULL);
}

/* mpirun's directory of the job on this host, which goes when the job ends. */
static inline const char *series_job_dir(void)
{
	const char *dir = opal_process_info.job_session_dir;

	return dir && !access(dir, W_OK | X_OK) ? dir : opal_tmp_directory();
}

static inline uint32_t series_job_id(void)
{
	return OMPI_PROC_MY_NAME->jobid;
}

/* The job's key for the library, by which its components find the same endpoint. */
static inline uint64_t series_job_key(void)
{
	return (uint64_t)series_job_id() << 32 | getuid();
}

static inline unsigned series_rank(const ompi_proc_t *proc)
{
	return OMPI_CAST_RTE_NAME(&proc->super.proc_name)->vpid;
}

/* Of a communicator's process: no other one has it, in all jobs that know of one another. */
static inline uint64_t series_process_number(ompi_communicator_t *comm, int rank)
{
	opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, rank);

	return (uint64_t)name.jobid << 32 | name.vpid;
}

/* Is this the first process of the job on its host? */
static inline bool series_is_first_on_host(void)
{
	return opal_process_info.my_local_rank == 0;
}

/*
 * A request on the stack of a blocking call. Nobody but that call waits for it, by polling, so
 * Open MPI's ompi_request_complete(), which also wakes sleepers and calls back, isn't needed. What
 * ended it doesn't touch it any more.
 */
static inline void series_stack_request_init(ompi_request_t *request)
{
	request->req_complete = REQUEST_PENDING;
}

static inline void series_stack_request_end(ompi_request_t *request)
{
	__atomic_store_n(&request->req_complete, REQUEST_COMPLETED, __ATOMIC_RELEASE);
}

static inline bool series_stack_request_has_ended(const ompi_request_t *request)
{
	return __atomic_load_n(&request->req_complete, __ATOMIC_ACQUIRE) == REQUEST_COMPLETED;
}

static inline void series_request_pending(ompi_request_t *request)
{
	request->req_complete = REQUEST_PENDING;
	request->req_state = OMPI_REQUEST_ACTIVE;
	request->req_status._cancelled = 0;
	request->req_status.MPI_ERROR = MPI_SUCCESS;
}

/* Is the message's memory one piece, starting at the type's true lower bound? */
static inline bool series_datatype_is_contiguous(const ompi_datatype_t *type, size_t count)
{
	/* The function looks at whether there is more than one element, and has an int for it. */
	return opal_datatype_is_contiguous_memory_layout(&type->super, count > 1 ? 2 : 1);
}

static inline int series_convert(opal_convertor_t *convertor, void *packed, size_t len, bool pack)
{
	struct iovec iov = {.iov_base = packed, .iov_len = len};
	uint32_t n = 1;
	int done;

	done = pack ? opal_convertor_pack(convertor, &iov, &n, &len)
		    : opal_convertor_unpack(convertor, &iov, &n, &len);
	OBJ_DESTRUCT(convertor);
	return done > 0 ? OMPI_SUCCESS : MPI_ERR_INTERN;
}

/* All of the message's `len` bytes without their gaps. */
static inline int series_pack(const void *addr, size_t count, const ompi_datatype_t *type,
			      void *packed, size_t len)
{
	opal_convertor_t convertor;
	int rc;

	OBJ_CONSTRUCT(&convertor, opal_convertor_t);
	rc = opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count,
						      addr, 0, &convertor);
	return rc == OPAL_SUCCESS ? series_convert(&convertor, packed, len, true) : rc;
}

static inline int series_unpack(void *addr, size_t count, const ompi_datatype_t *type, void *packed,
				size_t len)
{
	opal_convertor_t convertor;
	int rc;

	OBJ_CONSTRUCT(&convertor, opal_convertor_t);
	rc = opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count,
						      addr, 0, &convertor);
	return rc == OPAL_SUCCESS ? series_convert(&convertor, packed, len, false) : rc;
}

/* Is the buffer a GPU's, from and to which Open MPI's convertor copies? Only if it was built with
 * CUDA. */
static inline bool series_is_gpu_buffer(const void *addr, size_t count, const ompi_datatype_t *type)
{
#if OPAL_CUDA_SUPPORT
	opal_convertor_t convertor;
	bool gpu;

	if (!opal_cuda_support)
		return false;
	OBJ_CONSTRUCT(&convertor, opal_convertor_t);
	opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count,
						 addr, 0, &convertor);
	gpu = convertor.flags & (CONVERTOR_CUDA | CONVERTOR_CUDA_UNIFIED);
	OBJ_DESTRUCT(&convertor);
	return gpu;
#else
	(void)addr;
	(void)count;
	(void)type;
	return false;
#endif
}

/* The first of the tags of the set-up of a communicator, one below the other, which happens once.
 * Not of those that nonblocking collectives take: MPI_Comm_idup takes some of these when it comes
 * to that, which is before another collective in one process, and after it in another. */
#define SERIES_SETUP_TAG  (MCA_COLL_BASE_TAG_HCOLL_END + SERIES_SETUP_TAGS - 1)
#define SERIES_SETUP_TAGS 8

/*
 * The request of a nonblocking collective with datatypes. Behind the request Open MPI's own
 * functions keep the datatypes that they retain until its end (ompi_coll_base_nbc_request_t, whose
 * header needs one that Debian lacks). They must be NULL before the request is given to the user.
 */
struct series_coll_request {
	ompi_request_t ompi;
	void *retained[SERIES_COLL_RETAINED];
};

/* The tags of coll/tupleq's nonblocking collectives, which take the same ones again and again. */
#define SERIES_RING_TAGS       64
#define SERIES_RING_TAG(entry) (SERIES_SETUP_TAG + 1 + (entry))

/* libnbc's nonblocking collectives take a fresh tag each time; the other collectives' tags are
 * fixed. */
static inline bool series_tag_is_used_once(int tag)
{
	return (tag <= MCA_COLL_BASE_TAG_NONBLOCKING_BASE &&
		tag >= MCA_COLL_BASE_TAG_NONBLOCKING_END) ||
	       tag <= SERIES_SETUP_TAG;
}

/* The first of `n` such tags, one below the other. All processes of a communicator take them in the
 * order in which they call its nonblocking collectives. Debian lacks a header that Open MPI's own
 * function for it needs. */
static inline int series_take_tags(ompi_communicator_t *comm, int n)
{
	int32_t next = comm->c_nbc_tag, first;

	do {
		first = next - n < MCA_COLL_BASE_TAG_NONBLOCKING_END
				? MCA_COLL_BASE_TAG_NONBLOCKING_BASE
				: next;
	} while (!__atomic_compare_exchange_n(&comm->c_nbc_tag, &next, first - n, false,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return first;
}

/* Debian installs no header of Open MPI's that has the fields of an operation: these are its calls.
 */
static inline bool series_op_commutes(struct ompi_op_t *op)
{
	int yes = 0;

	PMPI_Op_commutative(op, &yes);
	return yes;
}

/* inout = in op inout */
static inline void series_reduce(ompi_communicator_t *comm, const void *in, void *inout, int count,
				 ompi_datatype_t *type, struct ompi_op_t *op)
{
	comm->c_coll->coll_reduce_local(in, inout, count, type, op,
					comm->c_coll->coll_reduce_local_module);
}

#define SERIES_ASSERTIONS                                               \
	(OMPI_COMM_ASSERT_NO_ANY_TAG | OMPI_COMM_ASSERT_NO_ANY_SOURCE | \
	 OMPI_COMM_ASSERT_EXACT_LENGTH | OMPI_COMM_ASSERT_ALLOW_OVERTAKE)

/* MPI 4's assertions, kept up to date by Open MPI in comm->c_assertions. */
static inline void series_subscribe_assertions(ompi_communicator_t *comm)
{
	for (int32_t bit = 1; bit <= SERIES_ASSERTIONS; bit <<= 1) {
		if (bit & SERIES_ASSERTIONS)
			ompi_comm_assert_subscribe(comm, bit);
	}
}

static inline uint32_t series_assertions(const ompi_communicator_t *comm)
{
	return comm->c_assertions & SERIES_ASSERTIONS;
}

/*
 * Open MPI hands requests from thread to thread by fences, which ThreadSanitizer doesn't follow:
 * said before a request is complete, or goes back to a list, and by who finds it so.
 */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define series_handed_over(request) __tsan_release(request)
#define series_taken_over(request)  __tsan_acquire(request)
#else
#define series_handed_over(request) ((void)(request))
#define series_taken_over(request)  ((void)(request))
#endif

#endif
