/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_copy.h - bytes between this process's memory and another's: once where the kernel lets us
 * (process_vm_readv/writev), or twice through shared memory with the help of the target's engine.
 */
#ifndef SHCA_PEER_COPY_H
#define SHCA_PEER_COPY_H

#include <stdbool.h>
#include <sys/uio.h>

/*
 * Moves n vectors to (write) or from process `other`; own[i] and theirs[i] are of the same length,
 * and there is room for one more at own[n]. Errors as of shca_mem_copy(), and -ETIMEDOUT: the other
 * doesn't answer.
 */
int shca_peer_copy(unsigned other, bool write, struct iovec *own, struct iovec *theirs, unsigned n);

/* Did another process ask this one to copy? */
bool shca_peer_copy_asked(void);
/* Does what other processes asked this one to copy; true if there was something. Any thread may
 * call it. */
bool shca_peer_copy_serve(void);
/* Forgets buffers (in a forked child). */
void shca_peer_copy_reset(void);

#endif
