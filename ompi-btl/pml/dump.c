/* SPDX-License-Identifier: BSD-3-Clause */
#include "dump.h"

#include <inttypes.h>
#include <stdlib.h>

/* The tuples of the process, the busiest first, among which those of the communicator are shown. */
enum { TUPLES = 64 };

int mca_pml_tupleq_dump(ompi_communicator_t *comm, int verbose)
{
	struct tq_tuple_info *info = calloc(TUPLES, sizeof(*info));
	const struct tq_counter_desc *desc;
	int n, i;

	if (!info)
		return OMPI_ERR_OUT_OF_RESOURCE;
	opal_output(0, "tupleq, %s: %s; communicator %s, context %u", mca_pml_tupleq.name,
		    tq_device_text(mca_pml_tupleq.ep), comm->c_name, series_context_id(comm));
	n = tq_tuple_infos(mca_pml_tupleq.ep, info, TUPLES);
	for (i = 0; i < n; i++) {
		if (info[i].ctx != series_context_id(comm))
			continue;
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
