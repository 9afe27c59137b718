/* SPDX-License-Identifier: BSD-3-Clause */
/* prices.h - what the verbs cost that TupleQ uses. */
#ifndef TUPLEQ_CHECK_PRICES_H
#define TUPLEQ_CHECK_PRICES_H

#include "port.h"
#include "report.h"

/* Measures and reports the prices of verbs on a port that works, in one process. */
void prices_report(struct report *report, const struct port *port);

#endif
