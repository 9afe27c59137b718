/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * engine.h - the thread that is the adapter while the application computes. The engine executes
 * what is large, held back or due later.
 */
#ifndef SHCA_ENGINE_H
#define SHCA_ENGINE_H

/* Starts the thread, unless it runs. Returns 0 or -errno. */
int shca_engine_start(void);
/* Ends the thread, for a clean exit. Nothing of this process is executed afterwards. */
void shca_engine_stop(void);
/* Forgets the thread and its work, in a forked child. */
void shca_engine_reset(void);

#endif
