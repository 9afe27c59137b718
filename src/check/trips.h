/* SPDX-License-Identifier: BSD-3-Clause */
/* trips.h - half a round trip between two processes of this host. */
#ifndef TUPLEQ_CHECK_TRIPS_H
#define TUPLEQ_CHECK_TRIPS_H

#include "port.h"
#include "report.h"

/* Measures and reports half a round trip by size, on a port that works. */
void trips_report(struct report *report, const struct port *port);

#endif
