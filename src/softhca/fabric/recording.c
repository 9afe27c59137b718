/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recording.c - what is recorded, and the files for that.
 */
#define _GNU_SOURCE 1
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

uint8_t shca_recording;

void shca_recording_set(unsigned what, bool on)
{
	if (on)
		__atomic_fetch_or(&shca_recording, (uint8_t)what, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&shca_recording, (uint8_t)~what, __ATOMIC_RELAXED);
}

int shca_recording_open(const struct shca_fabric *fabric, unsigned slot, const char *link)
{
	char path[sizeof(fabric->hdr->dir) + 64];
	int fd;

	/* A slot's generation counts its processes. */
	snprintf(path, sizeof(path), "%s/%s/%u.%llu", fabric->hdr->dir, link, slot,
		 (unsigned long long)atomic_load(&fabric->hdr->procs[slot].state) >> 8);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		shca_say("The %s of process %d isn't written, because %s can't be made (%s).", link,
			 (int)getpid(), path, strerror(errno));
	return fd;
}
