/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of the devices and ports of the machine is used. */
#ifndef TQ_NET_CHOOSE_H
#define TQ_NET_CHOOSE_H

struct tq_net;
struct tq_port;

/* Opens the best device that the parameters allow: sets dev.verbs and dev.port_num. */
int tq_device_choose(struct tq_net *net);
/* Fills in the ports that the parameters allow and that work, the best first, at most `room`.
 * Returns their number, or a negative errno after a sentence. */
int tq_device_list(struct tq_net *net, struct tq_port *ports, unsigned room);
/* Closes that device. */
void tq_device_release(struct tq_net *net);

#endif
