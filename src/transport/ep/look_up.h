/* SPDX-License-Identifier: BSD-3-Clause */
/* Look-ups of an endpoint: the calls, and their results on the way to the user. */
#ifndef TQ_EP_LOOK_UP_H
#define TQ_EP_LOOK_UP_H

#include "ep/objects.h"

/* Calls found() for the results of look-ups. Returns true if there were some. Called without the
 * lock. */
bool tq_ep_call_found(struct tq_ep *ep);

#endif
