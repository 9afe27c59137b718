/* SPDX-License-Identifier: BSD-3-Clause */
/* trips.h - half a round trip between two processes of this host. */
#ifndef TUPLEQ_CHECK_TRIPS_H
#define TUPLEQ_CHECK_TRIPS_H

#include "port.h"
#include "end.h"
#include "partner.h"
#include "report.h"

/* Measures and reports half a round trip by size, on a port that works. */
void trips_report(struct report *report, const struct port *port);

/* Measures between two ends that are connected, unless !works: then the end says why not. Returns
 * false if a message failed. */
bool trips_measure(struct report *report, struct end *end, struct partner *partner, bool works);

#endif
