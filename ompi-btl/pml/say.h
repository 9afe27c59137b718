/* SPDX-License-Identifier: BSD-3-Clause */
/* Sentences to the user, by Open MPI's output. */
#ifndef TUPLEQ_PML_SAY_H
#define TUPLEQ_PML_SAY_H

/* Writes "COMPONENT, SUBJECT: TEXT" to a stream of opal_output(), if the stream has that verbosity
 * (0: any). Open MPI takes 8 KiB of the stack for that: what a thread with less says goes to the
 * standard error output, wherever the stream leads. */
void mca_pml_tupleq_say(int verbosity, int stream, const char *component, const char *subject,
			const char *text);

#endif
