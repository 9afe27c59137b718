/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <stdarg.h>
#include <stdatomic.h>

#include "pml/say.h"

static void say(ompi_communicator_t *comm, int verbosity, int stream, const char *text)
{
	char subject[MPI_MAX_OBJECT_NAME + 20];

	snprintf(subject, sizeof(subject), "%s, rank %d", comm->c_name, ompi_comm_rank(comm));
	mca_pml_tupleq_say(verbosity, stream, "coll tupleq", subject, text);
}

void mca_coll_tupleq_verbose(ompi_communicator_t *comm, const char *format, ...)
{
	int stream = ompi_coll_base_framework.framework_output;
	char text[512];
	va_list args;

	if (opal_output_get_verbosity(stream) < 10)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say(comm, 10, stream, text);
}

void mca_coll_tupleq_warn_unserved(ompi_communicator_t *comm, const char *problem)
{
	static atomic_flag warned = ATOMIC_FLAG_INIT;
	char text[512];

	if (atomic_flag_test_and_set(&warned))
		return;
	snprintf(text, sizeof(text), "Open MPI's own collectives are used, because %s.", problem);
	say(comm, 0, 0, text);
}
