/* SPDX-License-Identifier: BSD-3-Clause */
#include "dump.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report.h"

/* The most tuples of the communicator that are printed. */
enum { TUPLES = 64 };

int mca_pml_tupleq_dump(ompi_communicator_t *comm, int verbose)
{
	int n, i, printed = 0;
	struct tq_tuple_info *info = mca_pml_tupleq_report_tuples(&n);
	const struct tq_counter_desc *desc;

	if (!info)
		return OMPI_ERR_OUT_OF_RESOURCE;
	opal_output(0, "tupleq, %s: %s; communicator %s, context %u", mca_pml_tupleq.name,
		    tq_device_text(mca_pml_tupleq.ep), comm->c_name, series_context_id(comm));
	for (i = 0; i < n && printed < TUPLES; i++) {
		if (info[i].ctx != series_context_id(comm))
			continue;
		printed++;
		opal_output(0,
			    "  source %d tag %d: %" PRIu64 " matched by the HCA, %" PRIu64
			    " by the library, %u promotions, %u recalls",
			    info[i].source, info[i].tag, info[i].direct, info[i].traditional,
			    info[i].promotions, info[i].recalls);
	}
	for (i = 0; verbose && (desc = tq_counter_desc(i)); i++)
		opal_output(0, "  %s %" PRIu64, desc->name, tq_counter(mca_pml_tupleq.ep, i));
	free(info);
	return OMPI_SUCCESS;
}
