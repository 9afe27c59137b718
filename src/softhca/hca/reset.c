/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reset.c - starting over: in a forked child, whose parent owns all that there was.
 */
#include "clock/clock.h"
#include "cq.h"
#include "engine.h"
#include "handles.h"
#include "handout.h"
#include "move.h"
#include "ops.h"
#include "qp_make.h"
#include "segment.h"
#include "xrcd.h"

void shca_hca_reset(void)
{
	shca_clock_reset();
	shca_handle_reset();
	shca_handout_reset();
	shca_engine_reset();
	shca_move_reset();
	shca_segment_reset();
	shca_cq_reset();
	shca_qp_reset();
	shca_xrcd_reset();
}
