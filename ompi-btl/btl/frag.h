/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages: Open MPI's fragments as the library's messages. */
#ifndef TUPLEQ_BTL_FRAG_H
#define TUPLEQ_BTL_FRAG_H

#include "endpoint.h"

/* Allocates the fragments and posts the receives. Returns 0 or an OPAL error. */
int mca_btl_tupleq_frags_open(void);
/* Frees the fragments and the memory of the receives. Called after the endpoint was closed. */
void mca_btl_tupleq_frags_close(void);

/* Posts the receives, and starts the sends, for which there was no memory earlier. */
void mca_btl_tupleq_frags_retry(void);

/* Ends a send, or delivers the message of a receive and posts it again. Called by the library. */
void mca_btl_tupleq_frag_complete(void *user, const struct tq_status *status);

mca_btl_base_descriptor_t *mca_btl_tupleq_alloc(mca_btl_base_module_t *module,
						mca_btl_base_endpoint_t *endpoint, uint8_t order,
						size_t size, uint32_t flags);
int mca_btl_tupleq_free(mca_btl_base_module_t *module, mca_btl_base_descriptor_t *descriptor);
mca_btl_base_descriptor_t *mca_btl_tupleq_prepare_src(mca_btl_base_module_t *module,
						      mca_btl_base_endpoint_t *endpoint,
						      struct opal_convertor_t *convertor,
						      uint8_t order, size_t reserve, size_t *size,
						      uint32_t flags);
int mca_btl_tupleq_send(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
			mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag);
int mca_btl_tupleq_sendi(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
			 struct opal_convertor_t *convertor, void *header, size_t header_size,
			 size_t payload_size, uint8_t order, uint32_t flags, mca_btl_base_tag_t tag,
			 mca_btl_base_descriptor_t **descriptor);

#endif
