/* SPDX-License-Identifier: BSD-3-Clause */
/* trials.h - what TupleQ does, in small, between two processes of this host on one port. */
#ifndef TUPLEQ_CHECK_TRIALS_H
#define TUPLEQ_CHECK_TRIALS_H

#include "port.h"
#include "report.h"

/* Runs and reports all tests. After one that failed the others are not run. */
void trials_report(struct report *report, const struct port *port);

#endif
