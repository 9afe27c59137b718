/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_copy.h - copies between this process's memory and a peer's: once where the kernel allows it
 * (process_vm_readv, process_vm_writev), or twice through shared memory with the help of the peer's
 * engine.
 */
#ifndef SHCA_PEER_COPY_H
#define SHCA_PEER_COPY_H

#include <stdbool.h>
#include <sys/uio.h>

/*
 * Copies n vectors to (write) or from process `other`. own[i] and theirs[i] have the same length,
 * and there is room for one more at own[n]. Returns 0, -EFAULT if own memory isn't there,
 * -EREMOTEIO if the other's isn't, -ESRCH if the other process is gone, -ETIMEDOUT if that process
 * doesn't answer, -ENOMEM without memory for a bounce buffer, or -errno of the system call.
 */
int shca_peer_copy(unsigned other, bool write, struct iovec *own, struct iovec *theirs, unsigned n);

/* Returns true if another process has asked this one to copy. */
bool shca_peer_copy_asked(void);
/* Makes the copies that other processes asked for. Returns true if there were any. Any thread. */
bool shca_peer_copy_serve(void);
/* Forgets buffers, in a forked child, or because the process takes another slot. */
void shca_peer_copy_reset(void);

#endif
