/* SPDX-License-Identifier: BSD-3-Clause */
/* Definitions for Open MPI 4.1 (BTL 3.1.0). Included by series.h. */
#ifndef TUPLEQ_BTL_SERIES_4_1_H
#define TUPLEQ_BTL_SERIES_4_1_H

/*
 * Makes the value of --mca pml known. The BTLs are initialised before the PML is chosen, and before
 * its framework has registered this variable, which it does once more, in the same way.
 */
static inline void series_btl_know_pml(void)
{
	mca_base_var_register("ompi", "pml", NULL, NULL, "PML components to use",
			      MCA_BASE_VAR_TYPE_STRING, NULL, 0, MCA_BASE_VAR_FLAG_SETTABLE,
			      OPAL_INFO_LVL_2, MCA_BASE_VAR_SCOPE_ALL_EQ,
			      &ompi_pml_base_framework.framework_selection);
}

/* Flags of the module that other series don't have. */
#define SERIES_BTL_FLAGS 0

static inline void series_btl_call(const mca_btl_active_message_callback_t *receiver,
				   mca_btl_base_module_t *module, mca_btl_base_tag_t tag,
				   struct mca_btl_base_endpoint_t *endpoint,
				   mca_btl_base_segment_t *segment)
{
	mca_btl_base_descriptor_t message = {.des_segments = segment, .des_segment_count = 1};

	(void)endpoint;
	receiver->cbfunc(module, tag, &message, receiver->cbdata);
}

#endif
