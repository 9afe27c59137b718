/* SPDX-License-Identifier: BSD-3-Clause */
/* The component's state, and what its files share. */
#ifndef TUPLEQ_BTL_H
#define TUPLEQ_BTL_H

#include "series.h"

#include <tupleq/tupleq.h>

/* The longest active message (bytes, with Open MPI's header) that the user may ask for: the upper
 * bound of the library's eager_limit. */
#define TUPLEQ_SEND_MAX 65536u

struct mca_btl_tupleq {
	/* This component's, or that of pml/tupleq, which may come later: NULL until then. */
	struct tq_ep *ep;
	bool is_owner;  /* this component opens the endpoint itself */
	char name[300]; /* "rank 3 on host n1" */
	bool opening;   /* until tq_open() has returned, errors go to open_error */
	char open_error[1024];
	opal_free_list_t operations;    /* rma.c */
	unsigned under_way;             /* operations */
	unsigned registration_failures; /* in a row */
	struct tq_mr *sink_mr;          /* of memory for results that nobody wants */
	struct tq_peer *self;           /* this process; NULL: it isn't added yet */
	/* The owner's, for active messages: */
	struct tq_ctx *ctx;
	struct mca_btl_base_endpoint_t *endpoints; /* list: all */
	opal_mutex_t endpoints_lock;
	opal_free_list_t frags; /* frag.c */
	bool closing;           /* nobody receives any more */
	unsigned idle_polls;    /* that found nothing to do */
};

extern struct mca_btl_tupleq mca_btl_tupleq;
extern mca_btl_base_component_t mca_btl_tupleq_component;
extern mca_btl_base_module_t mca_btl_tupleq_module;

/* Logs the library's sentences, by the verbosity of the btl framework. */
void mca_btl_tupleq_log(void *arg, enum tq_log_level level, const char *text);
/* Returns the endpoint; NULL: that of pml/tupleq isn't there (yet). */
struct tq_ep *mca_btl_tupleq_ep(void);
/* Adapts the module's flags to the adapter's atomic operations: removes them if it has none. Called
 * when there is an endpoint, before Open MPI looks at the flags for a peer. */
void mca_btl_tupleq_take_limits(void);
/* Returns the OPAL error for a negative errno, and OPAL_SUCCESS for 0. */
int mca_btl_tupleq_error(int rc);

#endif
