/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions for Open MPI 5.0 (BTL 3.3.0). Included by series.h. */
#ifndef TUPLEQ_BTL_SERIES_5_0_H
#define TUPLEQ_BTL_SERIES_5_0_H

/* Does nothing: in this series a PML initialises the BTLs, so --mca pml is known already. */
static inline void series_btl_know_pml(void)
{
}

/* Flags of the module that other series don't have. */
#define SERIES_BTL_FLAGS MCA_BTL_FLAGS_RDMA_REMOTE_COMPLETION

#define SERIES_BTL_HAS_WINDOW_FAULTS false

/* Returns NULL: osc/rdma may be used for each window. */
static inline const struct series_btl_fault *
series_btl_window_fault(const struct series_btl_window *window)
{
	(void)window;
	return NULL;
}

static inline void series_btl_call(const mca_btl_active_message_callback_t *receiver,
				   mca_btl_base_module_t *module, mca_btl_base_tag_t tag,
				   struct mca_btl_base_endpoint_t *endpoint,
				   mca_btl_base_segment_t *segment)
{
	const mca_btl_base_receive_descriptor_t message = {
		.endpoint = endpoint,
		.des_segments = segment,
		.des_segment_count = 1,
		.tag = tag,
		.cbdata = receiver->cbdata,
	};

	receiver->cbfunc(module, &message);
}

#endif
