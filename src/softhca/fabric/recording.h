/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recording.h - what this process records of its work, in files of its own: a trace (trace.h), or
 * the packets of its adapters (capture.h).
 *
 * For each kind the launcher makes a folder for these files, and links to it from the fabric's
 * directory; when the command has ended it makes one file of them (cmd/parts.h).
 */
#ifndef SHCA_RECORDING_H
#define SHCA_RECORDING_H

#include "fabric.h"

#define SHCA_RECORD_TRACE   1u
#define SHCA_RECORD_PACKETS 2u

/* The links in the fabric's directory. */
#define SHCA_TRACE_LINK   "trace"
#define SHCA_CAPTURE_LINK "capture"

/* SHCA_RECORD_*. A plain load, because an atomic one would cost each message an instruction more.
 */
extern uint8_t shca_recording;

/* Returns true if this process records anything: the one branch of a message that isn't. */
static inline bool shca_is_recording(void)
{
	return __builtin_expect(shca_recording != 0, 0);
}

/* Returns true if this process records that. */
static inline bool shca_records(unsigned what)
{
	return __builtin_expect(shca_recording & what, 0);
}

void shca_recording_set(unsigned what, bool on);
/* Makes the file of the process in that slot, in the folder behind the link of that name. Returns
 * its descriptor, or -1 after a sentence on the standard error output. */
int shca_recording_open(const struct shca_fabric *fabric, unsigned slot, const char *link);

#endif
