/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints that are open, for other users in the process. */
#ifndef TQ_EP_SHARE_H
#define TQ_EP_SHARE_H

struct tq_ep;

/* Lets tq_find() find the endpoint. */
void tq_share_open(struct tq_ep *ep);
/* Hides the endpoint from tq_find() again. */
void tq_share_close(struct tq_ep *ep);

#endif
