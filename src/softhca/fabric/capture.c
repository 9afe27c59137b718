/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * capture.c - writing the packets of this process.
 */
#define _GNU_SOURCE 1
#include "capture.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "address.h"
#include "cancel.h"
#include "pcapng.h"
#include "say.h"

static struct {
	pthread_mutex_t lock;
	int fd;
	bool erf;      /* true if each packet has an ERF header */
	uint64_t zero; /* date (ns since 1970) of the time 0 */
} file = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* Ends the capture. Needs the lock. */
static void end(void)
{
	shca_recording_set(SHCA_RECORD_PACKETS, false);
	if (file.fd >= 0)
		close(file.fd);
	file.fd = -1;
}

/* Ends the capture because the file can't grow. Needs the lock. */
static void give_up(int error)
{
	shca_say("The capture of process %d ends early, because its file can't grow (%s): free "
		 "some space, or capture a shorter run.",
		 (int)getpid(), strerror(error));
	end();
}

/* Returns the date of the time 0, modulo 2^64; the same in all processes of the fabric. */
static uint64_t date_of_zero(const struct shca_fabric *fabric)
{
	const struct shca_clock *clock = shca_fabric_clock(fabric);

	return clock ? clock->real_zero - clock->zero
		     : fabric->hdr->created - fabric->hdr->created_mono;
}

void shca_capture_start(const struct shca_fabric *fabric, unsigned slot)
{
	int cancel, rc;

	if (!fabric->hdr->config.text[SHCA_O_PCAP][0])
		return;
	cancel = shca_capture_lock();
	file.fd = shca_recording_open(fabric, slot, SHCA_CAPTURE_LINK);
	file.erf = !shca_is_ethernet(fabric->hdr);
	file.zero = date_of_zero(fabric);
	rc = file.fd >= 0 ? shca_pcapng_begin(file.fd, fabric) : 0;
	if (rc)
		give_up(-rc);
	shca_recording_set(SHCA_RECORD_PACKETS, file.fd >= 0);
	shca_capture_unlock(cancel);
}

void shca_capture_stop(void)
{
	int cancel = shca_capture_lock();

	end();
	shca_capture_unlock(cancel);
}

void shca_capture_reset(void)
{
	pthread_mutex_init(&file.lock, NULL);
	end();
}

int shca_capture_lock(void)
{
	int cancel = shca_cancel_hold();

	pthread_mutex_lock(&file.lock);
	return cancel;
}

void shca_capture_unlock(int cancel)
{
	pthread_mutex_unlock(&file.lock);
	shca_cancel_restore(cancel);
}

void shca_capture_add(unsigned hca, uint64_t time, const void *packet, uint32_t bytes)
{
	static const char zeros[4];
	uint64_t date = time + file.zero;
	struct shca_pcapng_packet begin;
	struct shca_pcapng_packet_end tail;
	struct shca_erf erf;
	struct iovec parts[] = {
		{&begin, sizeof(begin)},
		{&erf, file.erf ? sizeof(erf) : 0},
		{(void *)(uintptr_t)packet, bytes},
		{(void *)(uintptr_t)zeros, shca_pcapng_padding(bytes)},
		{&tail, sizeof(tail)},
	};
	ssize_t n;

	if (file.fd < 0)
		return;
	shca_erf_fill(&erf, date, bytes);
	shca_pcapng_frame(&begin, &tail, hca, date, bytes + (uint32_t)parts[1].iov_len);
	/* A file takes all, or is full. */
	n = writev(file.fd, parts, 5);
	if (n != (ssize_t)begin.length)
		give_up(n < 0 ? errno : ENOSPC);
}
