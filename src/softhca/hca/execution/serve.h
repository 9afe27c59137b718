/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve.h - the engine at work: with the real clock its thread executes what is due, in virtual
 * time the thread of the process that has the turn does.
 */
#ifndef SHCA_SERVE_H
#define SHCA_SERVE_H

#include <stdbool.h>

/* Executes one thing that is due. Returns false if nothing is. */
bool shca_serve_work(void);
/* Serves the requests of other processes (shca_proc.attention). Returns false if there are none. */
bool shca_serve_attention(void);

/* Serve until stopping() returns true; called by the engine's thread. */
void shca_serve_real(bool (*stopping)(void));
void shca_serve_virtual(bool (*stopping)(void));
/* Virtual time: executes all that is due. The calling thread has the turn. */
void shca_serve_due(void);

#endif
