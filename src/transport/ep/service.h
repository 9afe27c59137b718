/* SPDX-License-Identifier: BSD-3-Clause */
/* The service thread. */
#ifndef TQ_EP_SERVICE_H
#define TQ_EP_SERVICE_H

struct tq_ep;

/* Starts the thread. Returns 0, or -errno. */
int tq_service_start(struct tq_ep *ep);
/* Stops the thread, if there is one. Called without the lock, which the thread may need. */
void tq_service_stop(struct tq_ep *ep);

#endif
