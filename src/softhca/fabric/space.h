/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * space.h - the space of the file system that a fabric's shared file is in, and the sentences for
 * when there is none, or no addresses.
 */
#ifndef SHCA_SPACE_H
#define SHCA_SPACE_H

#include <stddef.h>
#include <stdint.h>

/* The file has memory there from now on. 0, or -ENOMEM: there is none. */
int shca_space_back(int fd, uint64_t off, uint64_t len);

/* After that failed for so many bytes: how full the file system of a fabric is, and what can be
 * done about it. */
void shca_space_text(const char *dir, uint64_t wanted, char *buf, size_t len);

/* After mapping so many bytes failed with that error: what the limit of addresses is, and how much
 * of it is taken. */
void shca_space_addresses_text(uint64_t wanted, int error, char *buf, size_t len);

#endif
