/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of the BTL interface that depends on the series of Open MPI. ../pml/series.h has the
 * part of all components.
 */
#ifndef TUPLEQ_BTL_SERIES_H
#define TUPLEQ_BTL_SERIES_H

#include "pml/series.h"

#include "ompi/errhandler/errhandler_predefined.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi/win/win.h"
#include "opal/class/opal_bitmap.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/btl/base/btl_base_error.h"
#include "opal/mca/btl/btl.h"

/* A window, for series_btl_window_fault(). */
struct series_btl_window {
	int flavor; /* MPI_WIN_FLAVOR_* */
	bool is_on_one_host;
	bool has_faster_btl;
	bool has_equal_units; /* the displacement units of all processes are equal */
};

/* Why osc/rdma must not be used for a window, and the module that is used instead. */
struct series_btl_fault {
	const char *reason;
	const char *instead;
	bool is_rare; /* osc/rdma is better than no module: programs seldom meet the fault */
};

#if OMPI_MAJOR_VERSION == 4
#include "series_4_1.h"
#else
#include "series_5_0.h"
#endif

/* Hands a message to the callback that is registered for its tag. */
static inline void series_btl_deliver(mca_btl_base_module_t *module, mca_btl_base_tag_t tag,
				      struct mca_btl_base_endpoint_t *endpoint, void *data,
				      size_t len)
{
	const mca_btl_active_message_callback_t *receiver =
		&mca_btl_base_active_message_trigger[tag];
	mca_btl_base_segment_t segment = {.seg_addr.pval = data, .seg_len = len};

	if (receiver->cbfunc)
		series_btl_call(receiver, module, tag, endpoint, &segment);
}

#endif
