/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reset.c - starting over in a forked child.
 */
#include "reset.h"

#include "fabric/capture.h"
#include "fabric/trace.h"
#include "hca/event_ack.h"
#include "hca/execution/engine.h"
#include "hca/execution/flush.h"
#include "hca/memory/mw.h"
#include "hca/memory/peer_copy.h"
#include "hca/memory/segment.h"
#include "hca/object_index.h"
#include "hca/queues/cq.h"
#include "hca/queues/cq_event.h"
#include "qp.h"
#include "xrcd.h"

void shca_reset(void)
{
	shca_trace_reset();
	shca_capture_reset();
	shca_object_index_reset();
	shca_event_ack_reset();
	shca_engine_reset();
	shca_peer_copy_reset();
	shca_segment_reset();
	shca_mw_reset();
	shca_cq_event_reset();
	shca_cq_reset();
	shca_flush_reset();
	shca_qp_reset();
	shca_xrcd_reset();
}
