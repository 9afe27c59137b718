/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals 4 on InfiniBand: the interface of libportals, after "The Portals 4.x Network Programming
 * Interface" (Sandia National Laboratories). libportals(3) says what this implementation adds and
 * bounds. Functions return PTL_OK or one of the codes below.
 */
#ifndef PORTALS4_H
#define PORTALS4_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---- return codes ---- */

enum ptl_retvals {
	PTL_OK = 0,
	PTL_ARG_INVALID,     /* an argument is wrong */
	PTL_CT_NONE_REACHED, /* the time was over before a counting event reached its test */
	PTL_EQ_DROPPED,      /* an event is returned; others before it were lost */
	PTL_EQ_EMPTY,        /* no event */
	PTL_FAIL,            /* an error that the log describes */
	PTL_IGNORED,         /* the call had no effect */
	PTL_IN_USE,          /* the object has operations under way, or entries */
	PTL_INTERRUPTED,     /* the object was freed while a thread waited for it */
	PTL_LIST_TOO_LONG,   /* never returned: PTL_NO_SPACE tells of max_list_size, too */
	PTL_NO_INIT,         /* before PtlInit() */
	PTL_NO_SPACE,        /* no memory, or a limit of ptl_ni_limits_t */
	PTL_PID_IN_USE,      /* the process can't have that pid */
	PTL_PT_FULL,         /* all portal table entries are in use */
	PTL_PT_EQ_NEEDED,    /* flow control needs an event queue */
	PTL_PT_IN_USE,       /* the portal table entry is in use */
	PTL_ABORTED          /* PtlAbort() was called */
};
#define PTL_STATUS_LAST (PTL_ABORTED + 1)

/* ---- types ---- */

typedef uint64_t ptl_size_t;
typedef uint32_t ptl_pt_index_t;
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef unsigned int ptl_time_t; /* ms */
typedef unsigned int ptl_interface_t;
typedef uint32_t ptl_nid_t; /* InfiniBand: the port's LID; RoCE: its IPv4 address */
typedef uint32_t ptl_pid_t; /* the number of the process's UD queue pair */
typedef uint32_t ptl_rank_t;
typedef uint32_t ptl_uid_t;

/* A handle names an object until the object is freed. Its number isn't used again soon. */
typedef uint64_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_eq_t;
typedef ptl_handle_any_t ptl_handle_ct_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_le_t;
typedef ptl_handle_any_t ptl_handle_me_t;

/* A process: its rank on logical interfaces, nid and pid on physical ones. */
typedef union {
	ptl_rank_t rank;
	struct {
		ptl_nid_t nid;
		ptl_pid_t pid;
	} phys;
} ptl_process_t;

#define PTL_INVALID_HANDLE ((ptl_handle_any_t)UINT64_C(0xffffffffffffffff))
#define PTL_EQ_NONE        ((ptl_handle_eq_t)UINT64_C(0xfffffffffffffffe))
#define PTL_CT_NONE        ((ptl_handle_ct_t)UINT64_C(0xfffffffffffffffd))

#define PTL_IFACE_DEFAULT ((ptl_interface_t)0xffffffff)
#define PTL_NID_ANY       ((ptl_nid_t)0xffffffff)
#define PTL_PID_ANY       ((ptl_pid_t)0xffffffff)
#define PTL_PID_MAX       ((ptl_pid_t)0xffffff)
#define PTL_RANK_ANY      ((ptl_rank_t)0xffffffff)
#define PTL_UID_ANY       ((ptl_uid_t)0xffffffff)
#define PTL_PT_ANY        ((ptl_pt_index_t)0xffffffff)
#define PTL_TIME_FOREVER  ((ptl_time_t)0xffffffff)
#define PTL_SIZE_MAX      ((ptl_size_t)UINT64_C(0xffffffffffffffff))

/* ---- the library ---- */

int PtlInit(void);
void PtlFini(void);
/* Ends waits for events with PTL_ABORTED, those that are under way and those to come. */
void PtlAbort(void);

/* ---- network interfaces ---- */

/* Options of an interface: one of the first two, and one of the others. */
#define PTL_NI_MATCHING          (1u << 0)
#define PTL_NI_NO_MATCHING       (1u << 1)
#define PTL_NI_LOGICAL           (1u << 2)
#define PTL_NI_PHYSICAL          (1u << 3)
#define PTL_NI_INIT_OPTIONS_MASK 0xfu

/* Features of an interface. */
#define PTL_TARGET_BIND_INACCESSIBLE (1u << 0)
#define PTL_TOTAL_DATA_ORDERING      (1u << 1)
#define PTL_COHERENT_ATOMICS         (1u << 2)

typedef struct {
	int max_entries; /* list entries at a time */
	int max_unexpected_headers;
	int max_mds;
	int max_cts;
	int max_eqs;
	int max_pt_index; /* the largest */
	int max_iovecs;   /* pieces of a memory descriptor or list entry */
	int max_list_size;
	int max_triggered_ops;
	ptl_size_t max_msg_size;
	ptl_size_t max_atomic_size;
	ptl_size_t max_fetch_atomic_size;
	ptl_size_t max_waw_ordered_size;
	ptl_size_t max_war_ordered_size;
	ptl_size_t max_volatile_size;
	unsigned int features;
} ptl_ni_limits_t;

/* How an operation has failed. */
typedef unsigned char ptl_ni_fail_t;
#define PTL_NI_OK             0
#define PTL_NI_UNDELIVERABLE  1 /* the connection to the process failed */
#define PTL_NI_DROPPED        2 /* no list entry took the message */
#define PTL_NI_PT_DISABLED    3
#define PTL_NI_PERM_VIOLATION 4 /* the entry is for another user */
#define PTL_NI_OP_VIOLATION   5 /* the entry doesn't allow the operation */
#define PTL_NI_NO_MATCH       6 /* a search found nothing */
#define PTL_NI_SEGV           7 /* the entry's memory can't be accessed */

typedef enum {
	PTL_SR_DROP_COUNT,
	PTL_SR_PERMISSION_VIOLATIONS,
	PTL_SR_OPERATION_VIOLATIONS
} ptl_sr_index_t;
#define PTL_SR_LAST (PTL_SR_OPERATION_VIOLATIONS + 1)
typedef int ptl_sr_value_t;

int PtlNIInit(ptl_interface_t iface, unsigned int options, ptl_pid_t pid,
	      const ptl_ni_limits_t *desired, ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle);
int PtlNIFini(ptl_handle_ni_t ni_handle);
int PtlNIStatus(ptl_handle_ni_t ni_handle, ptl_sr_index_t status_register, ptl_sr_value_t *status);
/* Sets *ni_handle to the interface of any object. */
int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle);
int PtlSetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, const ptl_process_t *mapping);
int PtlGetMap(ptl_handle_ni_t ni_handle, ptl_size_t map_size, ptl_process_t *mapping,
	      ptl_size_t *actual_map_size);
int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid);
int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_t *id);
int PtlGetPhysId(ptl_handle_ni_t ni_handle, ptl_process_t *id);
/* Returns nonzero if both name one object. */
int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2);

/* ---- portal table entries ---- */

#define PTL_PT_ONLY_USE_ONCE      (1u << 0)
#define PTL_PT_ONLY_TRUNCATE      (1u << 1)
#define PTL_PT_FLOWCTRL           (1u << 2) /* disabled if anything is exhausted */
#define PTL_PT_MATCH_UNORDERED    (1u << 3) /* ordered nevertheless */
#define PTL_PT_ALLOC_DISABLED     (1u << 4)
#define PTL_PT_ALLOC_OPTIONS_MASK 0x1fu

int PtlPTAlloc(ptl_handle_ni_t ni_handle, unsigned int options, ptl_handle_eq_t eq_handle,
	       ptl_pt_index_t pt_index_req, ptl_pt_index_t *pt_index);
int PtlPTFree(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);
int PtlPTDisable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);
int PtlPTEnable(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index);

/* ---- events ---- */

typedef unsigned char ptl_list_t;
#define PTL_PRIORITY_LIST 0
#define PTL_OVERFLOW_LIST 1

typedef unsigned char ptl_op_t;
#define PTL_MIN      0
#define PTL_MAX      1
#define PTL_SUM      2
#define PTL_PROD     3
#define PTL_LOR      4
#define PTL_LAND     5
#define PTL_BOR      6
#define PTL_BAND     7
#define PTL_LXOR     8
#define PTL_BXOR     9
#define PTL_SWAP     10
#define PTL_CSWAP    11 /* if operand == target, and so on */
#define PTL_CSWAP_NE 12
#define PTL_CSWAP_LE 13
#define PTL_CSWAP_LT 14
#define PTL_CSWAP_GE 15
#define PTL_CSWAP_GT 16
#define PTL_MSWAP    17 /* the bits that the operand has */
#define PTL_OP_LAST  18

typedef unsigned char ptl_datatype_t;
#define PTL_INT8_T              0
#define PTL_UINT8_T             1
#define PTL_INT16_T             2
#define PTL_UINT16_T            3
#define PTL_INT32_T             4
#define PTL_UINT32_T            5
#define PTL_FLOAT               6
#define PTL_INT64_T             7
#define PTL_UINT64_T            8
#define PTL_DOUBLE              9
#define PTL_FLOAT_COMPLEX       10
#define PTL_DOUBLE_COMPLEX      11
#define PTL_LONG_DOUBLE         12
#define PTL_LONG_DOUBLE_COMPLEX 13
#define PTL_DATATYPE_LAST       14

typedef unsigned char ptl_event_kind_t;
/* At the target: */
#define PTL_EVENT_GET                   0
#define PTL_EVENT_GET_OVERFLOW          1 /* an entry was appended that fits an earlier get */
#define PTL_EVENT_PUT                   2
#define PTL_EVENT_PUT_OVERFLOW          3
#define PTL_EVENT_ATOMIC                4
#define PTL_EVENT_ATOMIC_OVERFLOW       5
#define PTL_EVENT_FETCH_ATOMIC          6
#define PTL_EVENT_FETCH_ATOMIC_OVERFLOW 7
/* At the initiator: */
#define PTL_EVENT_REPLY 8
#define PTL_EVENT_SEND  9
#define PTL_EVENT_ACK   10
/* Events of the target's lists: */
#define PTL_EVENT_PT_DISABLED 11
#define PTL_EVENT_LINK        12
#define PTL_EVENT_AUTO_UNLINK 13
#define PTL_EVENT_AUTO_FREE   14 /* no unexpected header refers to the overflow entry any more */
#define PTL_EVENT_SEARCH      15

typedef struct {
	void *start; /* where the data are */
	void *user_ptr;
	ptl_hdr_data_t hdr_data;
	ptl_match_bits_t match_bits;
	ptl_size_t rlength;       /* requested */
	ptl_size_t mlength;       /* done */
	ptl_size_t remote_offset; /* at the target: requested; at the initiator: used */
	ptl_process_t initiator;
	ptl_uid_t uid;
	ptl_pt_index_t pt_index;
	ptl_event_kind_t type;
	ptl_list_t ptl_list;
	ptl_ni_fail_t ni_fail_type;
	ptl_op_t atomic_operation;
	ptl_datatype_t atomic_type;
} ptl_event_t;

int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_handle_eq_t *eq_handle);
int PtlEQFree(ptl_handle_eq_t eq_handle);
int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event);
int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event);
int PtlEQPoll(const ptl_handle_eq_t *eq_handles, unsigned int size, ptl_time_t timeout,
	      ptl_event_t *event, unsigned int *which);

/* ---- counting events ---- */

typedef struct {
	ptl_size_t success;
	ptl_size_t failure;
} ptl_ct_event_t;
typedef enum { PTL_CT_OPERATION, PTL_CT_BYTE } ptl_ct_type_t;

int PtlCTAlloc(ptl_handle_ni_t ni_handle, ptl_handle_ct_t *ct_handle);
int PtlCTFree(ptl_handle_ct_t ct_handle);
int PtlCTCancelTriggered(ptl_handle_ct_t ct_handle);
int PtlCTGet(ptl_handle_ct_t ct_handle, ptl_ct_event_t *event);
/* Waits until success is at least `test`, or failure isn't 0. */
int PtlCTWait(ptl_handle_ct_t ct_handle, ptl_size_t test, ptl_ct_event_t *event);
int PtlCTPoll(const ptl_handle_ct_t *ct_handles, const ptl_size_t *tests, unsigned int size,
	      ptl_time_t timeout, ptl_ct_event_t *event, unsigned int *which);
int PtlCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct);
int PtlCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment);

/* ---- memory descriptors ---- */

#define PTL_IOVEC (1u << 0) /* `start` is an array of `length` pieces */

typedef struct {
	void *iov_base;
	ptl_size_t iov_len;
} ptl_iovec_t;

#define PTL_MD_EVENT_SUCCESS_DISABLE (1u << 1)
#define PTL_MD_EVENT_SEND_DISABLE    (1u << 2)
#define PTL_MD_EVENT_CT_SEND         (1u << 3)
#define PTL_MD_EVENT_CT_REPLY        (1u << 4)
#define PTL_MD_EVENT_CT_ACK          (1u << 5)
#define PTL_MD_EVENT_CT_BYTES        (1u << 6)
#define PTL_MD_UNORDERED             (1u << 7)
#define PTL_MD_VOLATILE              (1u << 8)
#define PTL_MD_UNRELIABLE            (1u << 9)
#define PTL_MD_OPTIONS_MASK          0x3feu /* besides PTL_IOVEC */

typedef struct {
	void *start;
	ptl_size_t length;
	unsigned int options;
	ptl_handle_eq_t eq_handle;
	ptl_handle_ct_t ct_handle;
} ptl_md_t;

int PtlMDBind(ptl_handle_ni_t ni_handle, const ptl_md_t *md, ptl_handle_md_t *md_handle);
int PtlMDRelease(ptl_handle_md_t md_handle);

/* ---- list entries ---- */

/* PTL_IOVEC is bit 0. */
#define PTL_ME_OP_PUT                 (1u << 1)
#define PTL_ME_OP_GET                 (1u << 2)
#define PTL_ME_USE_ONCE               (1u << 3)
#define PTL_ME_UNEXPECTED_HDR_DISABLE (1u << 4)
#define PTL_ME_IS_ACCESSIBLE          (1u << 5)
#define PTL_ME_ACK_DISABLE            (1u << 6)
#define PTL_ME_EVENT_LINK_DISABLE     (1u << 7)
#define PTL_ME_EVENT_COMM_DISABLE     (1u << 8)
#define PTL_ME_EVENT_FLOWCTRL_DISABLE (1u << 9)
#define PTL_ME_EVENT_SUCCESS_DISABLE  (1u << 10)
#define PTL_ME_EVENT_OVER_DISABLE     (1u << 11)
#define PTL_ME_EVENT_UNLINK_DISABLE   (1u << 12)
#define PTL_ME_EVENT_CT_COMM          (1u << 13)
#define PTL_ME_EVENT_CT_OVERFLOW      (1u << 14)
#define PTL_ME_EVENT_CT_BYTES         (1u << 15)
#define PTL_ME_MANAGE_LOCAL           (1u << 16)
#define PTL_ME_NO_TRUNCATE            (1u << 17)
#define PTL_ME_MAY_ALIGN              (1u << 18)
#define PTL_ME_LOCAL_INC_UH_RLENGTH   (1u << 19)
#define PTL_ME_APPEND_OPTIONS_MASK    0xfffffu

#define PTL_LE_OP_PUT                 PTL_ME_OP_PUT
#define PTL_LE_OP_GET                 PTL_ME_OP_GET
#define PTL_LE_USE_ONCE               PTL_ME_USE_ONCE
#define PTL_LE_UNEXPECTED_HDR_DISABLE PTL_ME_UNEXPECTED_HDR_DISABLE
#define PTL_LE_IS_ACCESSIBLE          PTL_ME_IS_ACCESSIBLE
#define PTL_LE_ACK_DISABLE            PTL_ME_ACK_DISABLE
#define PTL_LE_EVENT_LINK_DISABLE     PTL_ME_EVENT_LINK_DISABLE
#define PTL_LE_EVENT_COMM_DISABLE     PTL_ME_EVENT_COMM_DISABLE
#define PTL_LE_EVENT_FLOWCTRL_DISABLE PTL_ME_EVENT_FLOWCTRL_DISABLE
#define PTL_LE_EVENT_SUCCESS_DISABLE  PTL_ME_EVENT_SUCCESS_DISABLE
#define PTL_LE_EVENT_OVER_DISABLE     PTL_ME_EVENT_OVER_DISABLE
#define PTL_LE_EVENT_UNLINK_DISABLE   PTL_ME_EVENT_UNLINK_DISABLE
#define PTL_LE_EVENT_CT_COMM          PTL_ME_EVENT_CT_COMM
#define PTL_LE_EVENT_CT_OVERFLOW      PTL_ME_EVENT_CT_OVERFLOW
#define PTL_LE_EVENT_CT_BYTES         PTL_ME_EVENT_CT_BYTES
#define PTL_LE_APPEND_OPTIONS_MASK    0xffffu

typedef struct {
	void *start;
	ptl_size_t length;
	ptl_handle_ct_t ct_handle;
	ptl_uid_t uid;
	unsigned int options;
} ptl_le_t;

typedef struct {
	void *start;
	ptl_size_t length;
	ptl_handle_ct_t ct_handle;
	ptl_uid_t uid;
	unsigned int options;
	ptl_process_t match_id;
	ptl_match_bits_t match_bits;
	ptl_match_bits_t ignore_bits;
	ptl_size_t min_free; /* with PTL_ME_MANAGE_LOCAL: unlinked if less is left */
} ptl_me_t;

typedef unsigned char ptl_search_op_t;
#define PTL_SEARCH_ONLY   0
#define PTL_SEARCH_DELETE 1

int PtlLEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
		ptl_list_t ptl_list, void *user_ptr, ptl_handle_le_t *le_handle);
int PtlLEUnlink(ptl_handle_le_t le_handle);
int PtlLESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_le_t *le,
		ptl_search_op_t ptl_search_op, void *user_ptr);
int PtlMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
		ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle);
int PtlMEUnlink(ptl_handle_me_t me_handle);
int PtlMESearch(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me,
		ptl_search_op_t ptl_search_op, void *user_ptr);

/* ---- operations ---- */

typedef unsigned char ptl_ack_req_t;
#define PTL_NO_ACK_REQ 0
#define PTL_ACK_REQ    1
#define PTL_CT_ACK_REQ 2 /* counted only */
#define PTL_OC_ACK_REQ 3 /* counted only, whatever became of the message */

int PtlPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	   ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	   ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	   ptl_hdr_data_t hdr_data);
int PtlGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	   ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	   ptl_size_t remote_offset, void *user_ptr);
int PtlAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	      ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
	      ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
	      ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype);
int PtlFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
		   ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
		   ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
		   ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
		   ptl_op_t operation, ptl_datatype_t datatype);
int PtlSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
	    ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
	    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
	    ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, const void *operand,
	    ptl_op_t operation, ptl_datatype_t datatype);
int PtlAtomicSync(void);
int PtlStartBundle(ptl_handle_ni_t ni_handle);
int PtlEndBundle(ptl_handle_ni_t ni_handle);

/* ---- triggered operations: start when success + failure of an event reach `threshold` ---- */

int PtlTriggeredPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
		    ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
		    ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
		    ptl_hdr_data_t hdr_data, ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredGet(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
		    ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
		    ptl_size_t remote_offset, void *user_ptr, ptl_handle_ct_t trig_ct_handle,
		    ptl_size_t threshold);
int PtlTriggeredAtomic(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
		       ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index,
		       ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
		       ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
		       ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredFetchAtomic(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
			    ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset,
			    ptl_size_t length, ptl_process_t target_id, ptl_pt_index_t pt_index,
			    ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
			    ptl_hdr_data_t hdr_data, ptl_op_t operation, ptl_datatype_t datatype,
			    ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredSwap(ptl_handle_md_t get_md_handle, ptl_size_t local_get_offset,
		     ptl_handle_md_t put_md_handle, ptl_size_t local_put_offset, ptl_size_t length,
		     ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
		     ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
		     const void *operand, ptl_op_t operation, ptl_datatype_t datatype,
		     ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredCTInc(ptl_handle_ct_t ct_handle, ptl_ct_event_t increment,
		      ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredCTSet(ptl_handle_ct_t ct_handle, ptl_ct_event_t new_ct,
		      ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, ptl_me_t *me,
			 ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle,
			 ptl_handle_ct_t trig_ct_handle, ptl_size_t threshold);
int PtlTriggeredMEUnlink(ptl_handle_me_t me_handle, ptl_handle_ct_t trig_ct_handle,
			 ptl_size_t threshold);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
