/* SPDX-License-Identifier: BSD-3-Clause */
/* libibverbs. The library is built with hidden visibility, and these functions are not its own. */
#ifndef TQ_NET_VERBS_H
#define TQ_NET_VERBS_H

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#endif
