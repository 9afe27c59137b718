/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * procfs.h - reading files of /proc.
 */
#ifndef SHCA_PROCFS_H
#define SHCA_PROCFS_H

#include <stdbool.h>
#include <sys/types.h>

/* Stores the beginning of a file as a string of at most len - 1 bytes. Returns its length, or -1.
 */
ssize_t shca_procfs_read(const char *path, char *buf, size_t len);
/* Stores the folder of this program. Returns false if /proc doesn't tell. */
bool shca_procfs_own_folder(char *buf, size_t len);
/* Returns the state letter of a thread, or 0 if there is no such thread. */
char shca_procfs_state(pid_t pid, pid_t tid);

#endif
