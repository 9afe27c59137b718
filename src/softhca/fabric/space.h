/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * space.h - the space of the file system that a fabric's shared file is in, and the sentences for
 * when there is none, or no addresses.
 */
#ifndef SHCA_SPACE_H
#define SHCA_SPACE_H

#include <stddef.h>
#include <stdint.h>

/* Backs a part of the file with memory. Returns 0, or -ENOMEM if there is none. */
int shca_space_back(int fd, uint64_t off, uint64_t len);

/* Writes the end of a sentence that begins with "there is", after backing `wanted` bytes failed:
 * how full the file system of a fabric is, and what to do about it. */
void shca_space_text(const char *dir, uint64_t wanted, char *buf, size_t len);

/* Writes why mapping `wanted` bytes failed, without a full stop: `error`, or the limit of address
 * space, how much of it is taken, and what to do about it. */
void shca_space_addresses_text(uint64_t wanted, int error, char *buf, size_t len);

#endif
