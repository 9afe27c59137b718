/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A control variable (MPI_T) of the module under test that is a text has the value that the user
 * gave it, and a description. A message gets through, too.
 *
 * variable NAME VALUE
 */
#include "check.h"

static void check_variable(const char *name, const char *value)
{
	int index, count, provided, verbosity, bind, scope, name_len, len;
	MPI_T_cvar_handle handle;
	MPI_T_enum enumtype;
	MPI_Datatype type;
	char found[128], help[1024], *text;

	name_len = sizeof(found);
	len = sizeof(help);
	t_eq(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
	t_eq(MPI_T_cvar_get_index(name, &index), MPI_SUCCESS);
	t_eq(MPI_T_cvar_get_info(index, found, &name_len, &verbosity, &type, &enumtype, help, &len,
				 &bind, &scope),
	     MPI_SUCCESS);
	t_true(type == MPI_CHAR, "%s is no text", name);
	t_true(strlen(help) > 10, "%s is described as \"%s\"", name, help);
	t_eq(MPI_T_cvar_handle_alloc(index, NULL, &handle, &count), MPI_SUCCESS);
	text = t_alloc((size_t)count + 1);
	t_eq(MPI_T_cvar_read(handle, text), MPI_SUCCESS);
	t_true(!strcmp(text, value), "%s is \"%s\", not \"%s\"", name, text, value);
	free(text);
	MPI_T_cvar_handle_free(&handle);
	MPI_T_finalize();
}

static void check_message(void)
{
	const struct t_msg m = {.src = 0, .tag = 1};
	char *buf = t_alloc(6000);

	if (t_rank == 0) {
		t_fill(buf, 6000, m);
		MPI_Send(buf, 6000, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
	} else if (t_rank == 1) {
		MPI_Recv(buf, 6000, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		t_verify(buf, 6000, m);
	}
	free(buf);
}

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 2);
	t_begin("variable");
	t_true(argc == 3, "usage: variable NAME VALUE");
	check_variable(argv[1], argv[2]);
	check_message();
	t_end();
	return t_finish();
}
