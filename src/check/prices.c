/* SPDX-License-Identifier: BSD-3-Clause */
#include "prices.h"

void prices_report(struct report *report, const struct port *port)
{
	(void)report;
	(void)port;
}
