/* SPDX-License-Identifier: BSD-3-Clause */
/* facts.h - what TupleQ needs of a port and its adapter, and what it finds. */
#ifndef TUPLEQ_CHECK_FACTS_H
#define TUPLEQ_CHECK_FACTS_H

#include "port.h"
#include "report.h"

/* Reports each fact of the port. After one that is REPORT_BAD the port can't be tested. */
void facts_report(struct report *report, struct port *port);

#endif
