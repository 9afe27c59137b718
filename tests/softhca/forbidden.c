/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forbidden.c - forbidden COMMAND [ARG...]: runs a command to whose processes the kernel refuses
 * epoll_create1(), with ENFILE. For test_launcher.sh.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../forbid.h"
#include "check.h"

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	t_child_begin();
	t_forbid(SYS_epoll_create1, ENFILE);
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
