/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reset.c - starting over: in a forked child, whose parent owns all that there was.
 */
#include "hca/execution/engine.h"
#include "hca/handles.h"
#include "hca/handout.h"
#include "hca/memory/move.h"
#include "hca/memory/segment.h"
#include "hca/ops.h"
#include "hca/queues/cq.h"
#include "qp_make.h"
#include "xrcd.h"

void shca_hca_reset(void)
{
	shca_handle_reset();
	shca_handout_reset();
	shca_engine_reset();
	shca_move_reset();
	shca_segment_reset();
	shca_cq_reset();
	shca_qp_reset();
	shca_xrcd_reset();
}
