/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xproc_shared.h - tests of test_xproc: atomics of several processes on one word, by one key or by
 * a key of each process that registered the memory.
 */
#ifndef T_XPROC_SHARED_H
#define T_XPROC_SHARED_H

void test_shared_word(void **state);
void test_shared_page(void **state);

#endif
