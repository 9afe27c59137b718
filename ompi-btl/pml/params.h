/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's parameters as MCA variables <framework>_tupleq_<name>. */
#ifndef TUPLEQ_PML_PARAMS_H
#define TUPLEQ_PML_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <tupleq/tupleq.h>

struct mca_base_component_2_1_0_t;

/* Registers the parameters, in the component's register function. `fixed` is a list, ended by NULL,
 * of names that the component decides itself; NULL: there are none. Returns 0 or an OPAL error. */
int mca_pml_tupleq_params_register(const struct mca_base_component_2_1_0_t *component,
				   const char *const *fixed);

/* Returns the values that the user has chosen, or NULL with a sentence in `why`. The caller frees
 * them with tq_params_free(). */
struct tq_params *mca_pml_tupleq_params(const struct mca_base_component_2_1_0_t *component,
					char *why, size_t size);

/* Warns once on a host if the environment has parameters of that framework's component tupleq that
 * don't exist, which Open MPI ignores. mpirun puts those of --mca there, but not always those of
 * parameter files. Returns at once as long as the component hasn't registered its parameters. */
void mca_pml_tupleq_params_warn(const char *project, const char *framework,
				void (*log)(void *arg, enum tq_log_level level, const char *text));

/* Returns true if the user's choice of that framework's components (--mca pml, btl) names tupleq,
 * rather than leaving all in or naming others. With `first` only the first name counts. */
bool mca_pml_tupleq_is_named(const char *project, const char *framework, bool first);

#endif
