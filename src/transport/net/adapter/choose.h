/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of the devices and ports of the machine is used. */
#ifndef TQ_NET_CHOOSE_H
#define TQ_NET_CHOOSE_H

struct tq_net;

/* Opens the best device that the parameters allow: sets dev.verbs and dev.port_num. */
int tq_device_choose(struct tq_net *net);
/* Closes that device. */
void tq_device_release(struct tq_net *net);

#endif
