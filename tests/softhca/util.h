/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * util.h - shared by the verbs tests: only public verbs and libc, nothing specific to softhca.
 * Every function that can't return a failure fails the running test itself; in a forked child it
 * ends the child with status 1.
 */
#ifndef T_UTIL_H
#define T_UTIL_H

#include "check.h"
#include "device.h"
#include "qp.h"
#include "work.h"

#endif
