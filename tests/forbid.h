/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forbid.h - system calls that the kernel refuses, as a container's seccomp profile does.
 */
#ifndef T_FORBID_H
#define T_FORBID_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#include "expect.h"

/* Makes the kernel refuse the system call `call` to this process from now on, with `error`. */
static inline void t_forbid(unsigned call, unsigned error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};

	t_true(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS: %s", strerror(errno));
	t_true(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), "PR_SET_SECCOMP: %s",
	       strerror(errno));
}

#endif
