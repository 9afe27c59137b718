/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface of the components to Open MPI. All headers of Open MPI are included here. Functions
 * that rely on Open MPI's internals are here if they are equal in all series, and otherwise in
 * series_4_1.h and series_5_0.h.
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
#include "ompi/mca/pml/base/pml_base_request.h"
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
#include "opal/util/info.h"
#include "opal/util/info_subscriber.h"
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

/* Fetches the data published by the process under the component's name. The caller frees *data. */
static inline int series_modex_recv(const mca_base_component_t *component, const ompi_proc_t *proc,
				    void **data, size_t *len)
{
	uint8_t *bytes = NULL;
	int rc;

	OPAL_MODEX_RECV(rc, component, &proc->super.proc_name, &bytes, len);
	*data = bytes;
	return rc;
}

/* Returns true for the communicators that MPI_Init adds to the PML, whose result MPI_Init ignores.
 */
static inline bool series_is_predefined(const ompi_communicator_t *comm)
{
	return comm == &ompi_mpi_comm_world.comm || comm == &ompi_mpi_comm_self.comm;
}

/* The text of the error, in the form of Open MPI's own texts: the name of the class comes first. */
#define SERIES_PEER_ERROR                                                                  \
	"TUPLEQ_ERR_PEER: a process that the operation needs has died, or the connection " \
	"to it has failed"

/* Returns the error code of an operation whose peer has failed. Open MPI 4.1 has no class for that,
 * so the first component adds one, and the other finds it by its text. With fault tolerance (5.0)
 * the error is MPI_ERR_PROC_FAILED. Returns a code and not the class, because to Open MPI's
 * MPI_Error_class() an added class is an unknown error. Returns MPI_ERR_INTERN before
 * series_add_peer_error(). */
static inline int series_peer_error(void)
{
	if (series_has_fault_tolerance())
		return series_failed_error();
	for (int i = ompi_mpi_errcode_lastpredefined + 1; i <= ompi_mpi_errcode_lastused; i++) {
		const ompi_mpi_errcode_t *error =
			(const ompi_mpi_errcode_t *)opal_pointer_array_get_item(&ompi_mpi_errcodes,
										i);

		if (error && error->code == i && !strcmp(error->errstring, SERIES_PEER_ERROR))
			return i;
	}
	return MPI_ERR_INTERN;
}

/* Adds the error class and its code, as MPI_Add_error_class() and MPI_Add_error_code() do, which
 * can't be called in MPI_Init. Called when the PML is enabled, before there are communicators. */
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
}

/* Updates MPI_COMM_WORLD's attribute for the errors that were added. */
static inline void series_show_last_error(void)
{
	ompi_attr_set_fint(COMM_ATTR, &ompi_mpi_comm_world.comm,
			   &ompi_mpi_comm_world.comm.c_keyhash, MPI_LASTUSEDCODE,
			   ompi_mpi_errcode_lastused, true);
}

/* Ends the job. The caller has reported the reason. */
static inline void series_abort(void)
{
	ompi_rte_abort(1, NULL);
}

/* Returns mpirun's directory of the job on this host, which Open MPI removes when the job ends, or
 * the directory of temporary files. */
static inline const char *series_job_dir(void)
{
	const char *dir = opal_process_info.job_session_dir;

	return dir && !access(dir, W_OK | X_OK) ? dir : opal_tmp_directory();
}

static inline uint32_t series_job_id(void)
{
	return OMPI_PROC_MY_NAME->jobid;
}

/* Returns the job's key, by which all components find the same endpoint. */
static inline uint64_t series_job_key(void)
{
	return (uint64_t)series_job_id() << 32 | getuid();
}

static inline unsigned series_rank(const ompi_proc_t *proc)
{
	return OMPI_CAST_RTE_NAME(&proc->super.proc_name)->vpid;
}

/* Writes the name of a process: "rank 3 on host n1". */
static inline void series_proc_name(const ompi_proc_t *proc, char *name, size_t size)
{
	snprintf(name, size, "rank %u on host %s", series_rank(proc),
		 opal_get_proc_hostname(&proc->super));
}

/* Returns a number of a communicator's process that is unique among all connected jobs. */
static inline uint64_t series_process_number(ompi_communicator_t *comm, int rank)
{
	opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, rank);

	return (uint64_t)name.jobid << 32 | name.vpid;
}

/* Returns true if this is the first process of the job on its host. */
static inline bool series_is_first_on_host(void)
{
	return opal_process_info.my_local_rank == 0;
}

/*
 * A request on the stack of a blocking call, which alone waits for it, by polling. So it needs no
 * ompi_request_complete(), which also wakes threads and calls back. The thread that ends the
 * request doesn't touch it afterwards.
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

/* Returns true if the message's memory is one piece that starts at the type's true lower bound. */
static inline bool series_datatype_is_contiguous(const ompi_datatype_t *type, size_t count)
{
	/* The function's count is an int, and only whether it exceeds 1 matters. */
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

/* Copies the message's `len` bytes without gaps. */
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

/* Returns true if the buffer is in a GPU's memory and Open MPI's convertor can copy it, which takes
 * an Open MPI that was built with CUDA. */
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

/* The tags of the set-up of a communicator: the first one, and their number; the others are below
 * it. They aren't those of nonblocking collectives, because MPI_Comm_idup takes some of these at a
 * time that differs between processes. */
#define SERIES_SETUP_TAG  (MCA_COLL_BASE_TAG_HCOLL_END + SERIES_SETUP_TAGS - 1)
#define SERIES_SETUP_TAGS 8

/*
 * The request of a nonblocking collective with datatypes, laid out like Open MPI's
 * ompi_coll_base_nbc_request_t, whose header needs one that Debian lacks. Open MPI stores the
 * datatypes that it retains until the end behind the request; these pointers must be NULL before
 * the user gets the request.
 */
struct series_coll_request {
	ompi_request_t ompi;
	void *retained[SERIES_COLL_RETAINED];
};

/* The tags of coll/tupleq's nonblocking collectives, which are used again and again: 64 for short
 * messages in each of two rings, 64 for long ones, and two of the ring of a single entry. */
#define SERIES_RING_TAGS       194
#define SERIES_RING_TAG(entry) (SERIES_SETUP_TAG + 1 + (entry))

/* The tags of coll/tupleq's persistent collectives: one for each, until they wrap. */
#define SERIES_PERSISTENT_TAGS   (1 << 28)
#define SERIES_PERSISTENT_TAG(n) (SERIES_RING_TAG(SERIES_RING_TAGS) + (n))

/* Returns the tag that replaces a ring or persistent tag where messages are to take no queue. */
#define SERIES_PLAIN_TAG(tag) ((tag) + SERIES_RING_TAGS + SERIES_PERSISTENT_TAGS)

/* The greatest tag that a plain message of coll/tupleq has. */
#define SERIES_PLAIN_END SERIES_PLAIN_TAG(SERIES_PERSISTENT_TAG(SERIES_PERSISTENT_TAGS - 1))
_Static_assert(SERIES_PLAIN_END < MCA_COLL_BASE_TAG_NEIGHBOR_END,
	       "the tags of blocking neighbourhood collectives are none of these");

/* Returns true for the tags of libnbc's nonblocking collectives, which takes a fresh one each time,
 * for those of the set-up, and for plain ones. */
static inline bool series_tag_takes_no_queue(int tag)
{
	if (OPAL_LIKELY(tag >= 0))
		return false;
	return (tag <= MCA_COLL_BASE_TAG_NONBLOCKING_BASE &&
		tag >= MCA_COLL_BASE_TAG_NONBLOCKING_END) ||
	       tag <= SERIES_SETUP_TAG ||
	       (tag >= SERIES_PLAIN_TAG(SERIES_RING_TAG(0)) && tag <= SERIES_PLAIN_END);
}

/* Takes `n` tags of nonblocking collectives, and returns the first one; the others are below it.
 * All processes of a communicator take tags in the order in which they call its nonblocking
 * collectives. (Open MPI's own function needs a header that Debian lacks.) */
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

/* Retains a communicator, unless another thread destroys it already. Returns true if the
 * communicator was retained. */
static inline bool series_retain_living(ompi_communicator_t *comm)
{
	opal_object_t *object = (opal_object_t *)comm;
	int32_t n = object->obj_reference_count;

	while (n > 0 &&
	       !opal_atomic_compare_exchange_strong_32(&object->obj_reference_count, &n, n + 1))
		;
	return n > 0;
}

/* Returns true if the op commutes. This function and the next ones call MPI and Open MPI, because
 * Debian doesn't install the header that declares the fields of an op. */
static inline bool series_op_commutes(struct ompi_op_t *op)
{
	int yes = 0;

	PMPI_Op_commutative(op, &yes);
	return yes;
}

/* Keeps an op until series_op_release(). */
static inline void series_op_retain(struct ompi_op_t *op)
{
	if (op)
		OBJ_RETAIN((opal_object_t *)op);
}

static inline void series_op_release(struct ompi_op_t *op)
{
	opal_object_t *object = (opal_object_t *)op;

	if (object)
		OBJ_RELEASE(object);
}

/* Computes inout = in op inout. */
static inline void series_reduce(ompi_communicator_t *comm, const void *in, void *inout, int count,
				 ompi_datatype_t *type, struct ompi_op_t *op)
{
	comm->c_coll->coll_reduce_local(in, inout, count, type, op,
					comm->c_coll->coll_reduce_local_module);
}

#define SERIES_ASSERTIONS                                               \
	(OMPI_COMM_ASSERT_NO_ANY_TAG | OMPI_COMM_ASSERT_NO_ANY_SOURCE | \
	 OMPI_COMM_ASSERT_EXACT_LENGTH | OMPI_COMM_ASSERT_ALLOW_OVERTAKE)

/* The keys of MPI 4's assertions. */
static const struct {
	series_info_text *key;
	uint32_t bit;
} series_assertion_keys[] = {
	{"mpi_assert_no_any_tag", OMPI_COMM_ASSERT_NO_ANY_TAG},
	{"mpi_assert_no_any_source", OMPI_COMM_ASSERT_NO_ANY_SOURCE},
	{"mpi_assert_exact_length", OMPI_COMM_ASSERT_EXACT_LENGTH},
	{"mpi_assert_allow_overtaking", OMPI_COMM_ASSERT_ALLOW_OVERTAKE},
};

enum { SERIES_ASSERTION_KEYS = sizeof(series_assertion_keys) / sizeof(series_assertion_keys[0]) };

/* Keeps an assertion in comm->c_assertions. Returns the value that Open MPI is to store in the
 * communicator's info, NULL: none, as the assertion was not set and is not. */
static inline series_info_text *
series_take_assertion(opal_infosubscriber_t *object, series_info_text *key, series_info_text *value)
{
	ompi_communicator_t *comm = (ompi_communicator_t *)object;
	bool is_set = opal_str_to_bool((char *)value), was_set;
	uint32_t bit = 0;

	for (int i = 0; i < SERIES_ASSERTION_KEYS; i++)
		if (!strcmp(key, series_assertion_keys[i].key))
			bit = series_assertion_keys[i].bit;
	was_set = comm->c_assertions & bit;
	comm->c_assertions = is_set ? comm->c_assertions | bit : comm->c_assertions & ~bit;
	if (is_set)
		return "true";
	return was_set ? "false" : NULL;
}

/* Makes Open MPI keep MPI 4's assertions up to date in comm->c_assertions. Its own function for
 * that (ompi_comm_assert_subscribe()) stores the default of each in the communicator's info, which
 * takes a fifth of the time of MPI_Comm_dup. */
static inline void series_subscribe_assertions(ompi_communicator_t *comm)
{
	for (int i = 0; i < SERIES_ASSERTION_KEYS; i++)
		opal_infosubscribe_subscribe(&comm->super, series_assertion_keys[i].key,
					     (series_info_text *)"false", series_take_assertion);
}

static inline uint32_t series_assertions(const ompi_communicator_t *comm)
{
	return comm->c_assertions & SERIES_ASSERTIONS;
}

/*
 * Open MPI hands requests from thread to thread by fences, which ThreadSanitizer doesn't follow.
 * The first macro precedes the completion of a request, or its way to a free list; the other one
 * follows when a thread finds the request there.
 */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define series_handed_over(request) __tsan_release(request)
#define series_taken_over(request)  __tsan_acquire(request)
#else
#define series_handed_over(request) ((void)(request))
#define series_taken_over(request)  ((void)(request))
#endif

/* Returns true if a request has ended; then its status and its message may be read. */
static inline bool series_request_has_ended(ompi_request_t *request)
{
	if (!REQUEST_COMPLETE(request))
		return false;
	/* Orders the read of the flag before the reads of the status and of the message. */
	opal_atomic_rmb();
	series_taken_over(request);
	return true;
}

#endif
