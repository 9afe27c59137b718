/* SPDX-License-Identifier: BSD-3-Clause */
#include "log_peer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void mca_pml_tupleq_log_peer(mca_pml_tupleq_log_fn_t *log, enum tq_log_level level,
			     const char *name, const char *predicate)
{
	char text[512];

	snprintf(text, sizeof(text), "%s %s", name, predicate);
	log(NULL, level, text);
}

void mca_pml_tupleq_log_unreachable(mca_pml_tupleq_log_fn_t *log, enum tq_log_level level,
				    const char *name, int rc)
{
	char predicate[200];

	switch (rc) {
	case -EPROTO:
		mca_pml_tupleq_log_peer(log, level, name, "uses another version of TupleQ.");
		break;
	case -ENETUNREACH:
		mca_pml_tupleq_log_peer(log, level, name,
					"can't be reached: its adapter is on another kind of link, "
					"in another subnet, or in another partition (P_Key), or "
					"its RoCE address is of another family, IPv4 or IPv6 "
					"(gid_index).");
		break;
	default:
		snprintf(predicate, sizeof(predicate), "can't be reached: %s.", strerror(-rc));
		mca_pml_tupleq_log_peer(log, level, name, predicate);
	}
}
