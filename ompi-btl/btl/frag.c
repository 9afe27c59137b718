/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An active message is a message in the context of active messages, to the peer's rank there, with
 * Open MPI's tag. A few receives from anybody, with any tag, are always posted.
 */
#include "frag.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "failure.h"

/* Receives that are posted: messages that find none are copied once more. They take 1 MiB, with
 * fragments of 16 KiB. */
#define RECEIVES 64

/* The library's `user` of a request: the first member of a receive and of a fragment. */
struct user {
	bool is_receive;
};

struct receive {
	struct user user;
	struct tq_req *req;
	char *data;
	struct receive *next; /* unposted */
};

typedef struct mca_btl_tupleq_frag {
	mca_btl_base_descriptor_t super;
	struct user user;
	mca_btl_base_segment_t segments[2]; /* the frag's own memory, and the user's */
	mca_btl_base_endpoint_t *endpoint;
	mca_btl_base_tag_t tag;
	struct tq_req *req;
	struct mca_btl_tupleq_frag *next, *prev; /* unsent */
} mca_btl_tupleq_frag_t;

static void frag_construct(mca_btl_tupleq_frag_t *frag)
{
	frag->user.is_receive = false;
	frag->super.des_segments = frag->segments;
	frag->segments[0].seg_addr.pval = frag + 1;
}

OBJ_CLASS_INSTANCE(mca_btl_tupleq_frag_t, mca_btl_base_descriptor_t, frag_construct, NULL);

static struct receive receives[RECEIVES];

/* Receives and sends that could not be started for lack of memory: two lists and the sum of their
 * lengths. pml/ob1 itself would try a send again only when another one ends. */
static struct receive *unposted;
static mca_btl_tupleq_frag_t *unsent;
static unsigned unstarted_count;
static opal_mutex_t unstarted_lock = OPAL_MUTEX_STATIC_INIT;

static void count_unstarted(int n)
{
	__atomic_store_n(&unstarted_count, unstarted_count + n, __ATOMIC_RELAXED);
}

/* ---- receiving ---- */

/* Ends the job, because a message is lost for which pml/ob1 would wait for ever. */
static void end_job_for_loss(const struct tq_status *status)
{
	char text[256];

	if (status->error == -EMSGSIZE)
		snprintf(text, sizeof(text),
			 "A message of %" PRIu64
			 " bytes is lost, because btl_tupleq_max_send_size is %zu "
			 "here: set it to one value on all ranks.",
			 status->length, mca_btl_tupleq_module.btl_max_send_size);
	else
		snprintf(text, sizeof(text), "A message is lost (%s).", strerror(-status->error));
	mca_btl_tupleq_log(NULL, TQ_LOG_ERROR, text);
	mca_btl_tupleq_end_job(status->error == -EMSGSIZE ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER,
			       "the receipt of a message");
}

/* Delivers the message of a receive. Returns false if the receive isn't to be posted again, because
 * the context is removed. */
static bool deliver(const struct receive *receive, const struct tq_status *status)
{
	if (mca_btl_tupleq.closing || status->error == -ECANCELED)
		return false;
	if (!status->error)
		series_btl_deliver(&mca_btl_tupleq_module, (mca_btl_base_tag_t)status->tag, NULL,
				   receive->data, status->length);
	else if (status->error != -EIO) /* the sender's failure is reported elsewhere */
		end_job_for_loss(status);
	return true;
}

static void warn_once(bool *has_warned, const char *text)
{
	if (!__atomic_exchange_n(has_warned, true, __ATOMIC_RELAXED))
		mca_btl_tupleq_log(NULL, TQ_LOG_WARN, text);
}

/* Puts a receive into the list for mca_btl_tupleq_frags_retry(). */
static void add_unposted(struct receive *receive)
{
	static bool has_warned;

	opal_mutex_lock(&unstarted_lock);
	LL_PREPEND(unposted, receive);
	count_unstarted(1);
	opal_mutex_unlock(&unstarted_lock);
	warn_once(&has_warned, "There is no memory for a receive, which is tried again.");
}

static void post(struct receive *receive)
{
	const struct tq_buf buf = {.addr = receive->data,
				   .len = mca_btl_tupleq_module.btl_max_send_size};
	struct tq_status status;
	int rc;

	do
		rc = tq_recv(mca_btl_tupleq.ctx, TQ_ANY_SOURCE, TQ_ANY_TAG, &buf, receive,
			     &receive->req, &status);
	while (rc == 1 && deliver(receive, &status));
	/* The other error is that of an adapter that has failed. */
	if (rc == -ENOMEM)
		add_unposted(receive);
}

int mca_btl_tupleq_frags_open(void)
{
	size_t size = mca_btl_tupleq_module.btl_max_send_size;
	char *memory = malloc(RECEIVES * size);
	int rc;

	if (!memory)
		return OPAL_ERR_OUT_OF_RESOURCE;
	OBJ_CONSTRUCT(&mca_btl_tupleq.frags, opal_free_list_t);
	rc = opal_free_list_init(&mca_btl_tupleq.frags, sizeof(mca_btl_tupleq_frag_t) + size,
				 opal_cache_line_size, OBJ_CLASS(mca_btl_tupleq_frag_t), 0,
				 opal_cache_line_size, 32, -1, 64, NULL, 0, NULL, NULL, NULL);
	if (rc != OPAL_SUCCESS) {
		OBJ_DESTRUCT(&mca_btl_tupleq.frags);
		free(memory);
		return rc;
	}
	for (int i = 0; i < RECEIVES; i++) {
		receives[i] = (struct receive){{true}, .data = memory + (size_t)i * size};
		post(&receives[i]);
	}
	return OPAL_SUCCESS;
}

void mca_btl_tupleq_frags_close(void)
{
	unposted = NULL;
	unsent = NULL;
	unstarted_count = 0;
	free(receives[0].data);
	OBJ_DESTRUCT(&mca_btl_tupleq.frags);
}

/* ---- fragments ---- */

static mca_btl_tupleq_frag_t *frag_get(size_t len, uint32_t flags)
{
	mca_btl_tupleq_frag_t *frag;

	if (len > mca_btl_tupleq_module.btl_max_send_size)
		return NULL;
	frag = (mca_btl_tupleq_frag_t *)opal_free_list_get(&mca_btl_tupleq.frags);
	if (!frag)
		return NULL;
	frag->super.des_segment_count = 1;
	frag->super.des_flags = flags;
	frag->super.order = MCA_BTL_NO_ORDER;
	frag->segments[0].seg_len = len;
	return frag;
}

static void frag_put(mca_btl_tupleq_frag_t *frag)
{
	opal_free_list_return(&mca_btl_tupleq.frags, &frag->super.super);
}

mca_btl_base_descriptor_t *mca_btl_tupleq_alloc(mca_btl_base_module_t *module,
						mca_btl_base_endpoint_t *endpoint, uint8_t order,
						size_t size, uint32_t flags)
{
	mca_btl_tupleq_frag_t *frag = frag_get(size, flags);

	(void)module;
	(void)endpoint;
	(void)order;
	return frag ? &frag->super : NULL;
}

int mca_btl_tupleq_free(mca_btl_base_module_t *module, mca_btl_base_descriptor_t *descriptor)
{
	(void)module;
	frag_put((mca_btl_tupleq_frag_t *)descriptor);
	return OPAL_SUCCESS;
}

/* Packs up to *size bytes behind the reserve, or lets the second segment point to them. Sets *size
 * to their number. */
static int take_data(mca_btl_tupleq_frag_t *frag, struct opal_convertor_t *convertor, size_t *size)
{
	mca_btl_base_segment_t *first = &frag->segments[0];
	struct iovec iov = {.iov_base = NULL, .iov_len = *size};
	bool in_place = !opal_convertor_need_buffers(convertor);
	uint32_t n = 1;

	if (!in_place)
		iov.iov_base = (char *)first->seg_addr.pval + first->seg_len;
	if (opal_convertor_pack(convertor, &iov, &n, size) < 0)
		return OPAL_ERROR;
	if (in_place) {
		frag->segments[1].seg_addr.pval = iov.iov_base;
		frag->segments[1].seg_len = *size;
		frag->super.des_segment_count = 2;
	} else {
		first->seg_len += *size;
	}
	return OPAL_SUCCESS;
}

mca_btl_base_descriptor_t *mca_btl_tupleq_prepare_src(mca_btl_base_module_t *module,
						      mca_btl_base_endpoint_t *endpoint,
						      struct opal_convertor_t *convertor,
						      uint8_t order, size_t reserve, size_t *size,
						      uint32_t flags)
{
	mca_btl_tupleq_frag_t *frag = frag_get(reserve, flags);

	(void)endpoint;
	(void)order;
	if (!frag)
		return NULL;
	if (*size > module->btl_max_send_size - reserve)
		*size = module->btl_max_send_size - reserve;
	if (take_data(frag, convertor, size) != OPAL_SUCCESS) {
		frag_put(frag);
		return NULL;
	}
	return &frag->super;
}

/* ---- sending ---- */

static void pack(void *arg, uint64_t offset, void *to, size_t len)
{
	const mca_btl_tupleq_frag_t *frag = arg;

	for (size_t i = 0; i < frag->super.des_segment_count && len; i++) {
		const mca_btl_base_segment_t *s = &frag->segments[i];
		size_t n;

		if (offset >= s->seg_len) {
			offset -= s->seg_len;
			continue;
		}
		n = s->seg_len - offset < len ? s->seg_len - offset : len;
		memcpy(to, (const char *)s->seg_addr.pval + offset, n);
		to = (char *)to + n;
		len -= n;
		offset = 0;
	}
}

/* Puts a send into the list for mca_btl_tupleq_frags_retry(). */
static void add_unsent(mca_btl_tupleq_frag_t *frag)
{
	static bool has_warned;

	opal_mutex_lock(&unstarted_lock);
	DL_APPEND(unsent, frag);
	count_unstarted(1);
	opal_mutex_unlock(&unstarted_lock);
	warn_once(&has_warned, "There is no memory for a send, which is tried again.");
}

/* Starts sending a fragment. Returns 1 if the send has ended, 0 if it is under way or is to be
 * tried again, or an OPAL error. */
static int start(mca_btl_tupleq_frag_t *frag, mca_btl_base_endpoint_t *endpoint,
		 mca_btl_base_tag_t tag)
{
	static const struct tq_buf_ops ops = {.pack = pack};
	struct tq_buf buf = {.len = frag->segments[0].seg_len};
	unsigned flags = TQ_SEND_NO_QUEUE;
	int rc;

	frag->endpoint = endpoint;
	frag->tag = tag;
	if (frag->super.des_segment_count == 2) {
		buf.len += frag->segments[1].seg_len;
		buf.ops = &ops;
		buf.arg = frag;
	} else {
		buf.addr = frag->segments[0].seg_addr.pval;
		flags |= TQ_SEND_BUFFERED; /* the user's send may have ended */
	}
	rc = tq_send(mca_btl_tupleq.ctx, endpoint->rank, tag, &buf, flags, &frag->user, &frag->req);
	if (rc == -ENOMEM) {
		add_unsent(frag);
		return 0;
	}
	if (rc == -EIO)
		mca_btl_tupleq_failed(endpoint);
	return rc < 0 ? mca_btl_tupleq_error(rc) : rc;
}

static void end(mca_btl_tupleq_frag_t *frag, bool call, int status)
{
	bool is_ours = frag->super.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;

	if (call && frag->super.des_cbfunc)
		frag->super.des_cbfunc(&mca_btl_tupleq_module, frag->endpoint, &frag->super,
				       status);
	if (is_ours)
		frag_put(frag);
}

void mca_btl_tupleq_frags_retry(void)
{
	struct receive *receive_list, *receive, *next_receive;
	mca_btl_tupleq_frag_t *frag_list, *frag, *next_frag;
	int rc;

	if (OPAL_LIKELY(!__atomic_load_n(&unstarted_count, __ATOMIC_RELAXED)))
		return;
	opal_mutex_lock(&unstarted_lock);
	receive_list = unposted;
	frag_list = unsent;
	unposted = NULL;
	unsent = NULL;
	count_unstarted(-(int)unstarted_count);
	opal_mutex_unlock(&unstarted_lock);
	LL_FOREACH_SAFE(receive_list, receive, next_receive) {
		post(receive);
	}
	DL_FOREACH_SAFE(frag_list, frag, next_frag) {
		rc = start(frag, frag->endpoint, frag->tag);
		if (rc)
			end(frag, true, rc == 1 ? OPAL_SUCCESS : rc);
	}
}

void mca_btl_tupleq_frag_complete(void *arg, const struct tq_status *status)
{
	struct user *user = arg;
	mca_btl_tupleq_frag_t *frag;

	if (user->is_receive) {
		if (deliver(arg, status))
			post(arg);
		return;
	}
	frag = (mca_btl_tupleq_frag_t *)((char *)user - offsetof(mca_btl_tupleq_frag_t, user));
	if (status->error)
		mca_btl_tupleq_failed(frag->endpoint);
	end(frag, true, mca_btl_tupleq_error(status->error));
}

int mca_btl_tupleq_send(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
			mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
	mca_btl_tupleq_frag_t *frag = (mca_btl_tupleq_frag_t *)descriptor;
	/* Read before the send starts: it may end, and its descriptor be used again, at any time.
	 */
	bool always = descriptor->des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
	int rc;

	(void)module;
	descriptor->des_flags |= MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
	rc = start(frag, endpoint, tag);
	if (rc == 1)
		end(frag, always, OPAL_SUCCESS);
	return rc;
}

int mca_btl_tupleq_sendi(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
			 struct opal_convertor_t *convertor, void *header, size_t header_size,
			 size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
			 mca_btl_base_descriptor_t **descriptor)
{
	size_t len = header_size + payload_size, size = payload_size;
	mca_btl_tupleq_frag_t *frag = frag_get(header_size, flags);
	int rc;

	(void)order;
	if (descriptor)
		*descriptor = NULL;
	if (!frag || len > module->btl_eager_limit)
		goto no_room;
	memcpy(frag->segments[0].seg_addr.pval, header, header_size);
	if (size && take_data(frag, convertor, &size) != OPAL_SUCCESS)
		goto no_room;
	frag->super.des_flags = flags | MCA_BTL_DES_FLAGS_BTL_OWNERSHIP;
	frag->super.des_cbfunc = NULL;
	/* The caller's memory is its own again when this returns. */
	if (frag->super.des_segment_count == 2) {
		memcpy((char *)frag->segments[0].seg_addr.pval + header_size,
		       frag->segments[1].seg_addr.pval, size);
		frag->segments[0].seg_len = len;
		frag->super.des_segment_count = 1;
	}
	rc = start(frag, endpoint, tag);
	if (rc == 1)
		end(frag, false, OPAL_SUCCESS);
	if (rc >= 0)
		return OPAL_SUCCESS;
no_room:
	if (frag)
		frag_put(frag);
	if (descriptor)
		*descriptor = mca_btl_tupleq_alloc(module, endpoint, order, len, flags);
	return OPAL_ERR_RESOURCE_BUSY;
}
