/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of endpoints: a host's address and a service, as sockets have them. Whoever knows only
 * these asks by UDP for the endpoint's address. A thread answers for each endpoint that has a name.
 */
#ifndef TF_NAMES_H
#define TF_NAMES_H

#include <stdbool.h>

#include "addr.h"

struct tf_name;

/*
 * Gives an endpoint the name `service` (TF_ADDR_SERVICE) until tf_name_end(). *name is NULL if the
 * name has no port, or is another endpoint's; the endpoint then has its address alone, and if the
 * other one is not of this process the log says so. Returns 0, or a negative errno after a
 * sentence.
 */
int tf_name_give(const struct tf_addr *service, const struct tf_addr *endpoint,
		 struct tf_name **name);
void tf_name_end(struct tf_name *name);

/* A question for an endpoint's address. */
struct tf_question {
	bool open;
	int fd;
	long long next, until; /* ms: when it is asked again, and given up */
};

/* Asks, or looks for the answer. Returns 0 with the endpoint's address in *found; -EAGAIN as long
 * as no answer is there; -EHOSTUNREACH after some seconds without one; or another negative errno.
 */
int tf_question_ask(struct tf_question *question, const struct tf_addr *service,
		    struct tf_addr *found);
void tf_question_end(struct tf_question *question);

#endif
