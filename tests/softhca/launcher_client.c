/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launcher_client.c - a process of a fabric for test_launcher.sh: takes a slot in $SOFTHCA_FABRIC,
 * makes one object of each kind, prints its pid, and stays until its input ends. With "keep" it
 * then leaves without giving its slot back, like a process that crashes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/proc.h"
#include "fabric/table.h"

int main(int argc, char **argv)
{
	const char *dir = getenv(SHCA_ENV_FABRIC);
	struct shca_fabric f;
	char err[512], c;
	int slot;

	if (!dir || shca_fabric_attach(dir, &f, err, sizeof(err))) {
		fprintf(stderr, "launcher_client: %s\n", dir ? err : "not in a fabric");
		return 1;
	}
	slot = shca_proc_attach(&f);
	if (slot < 0)
		return 1;
	for (int k = 0; k < SHCA_KINDS; k++) {
		int64_t i = shca_table_alloc(&f, &f.hdr->hcas[0], k, (unsigned)slot);

		if (i < 0)
			return 1;
		shca_table_publish(shca_table_entry(&f, &f.hdr->hcas[0].tables[k], (uint32_t)i));
	}
	shca_count(&f.hdr->hcas[0], SHCA_C_SENDS, 5);
	printf("attached %d\n", (int)getpid());
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	if (argc < 2 || strcmp(argv[1], "keep") != 0)
		shca_proc_detach(&f, (unsigned)slot);
	shca_fabric_detach(&f);
	return 0;
}
