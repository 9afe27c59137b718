/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters (params.def) and their parser. */
#ifndef TQ_BASE_PARAMS_H
#define TQ_BASE_PARAMS_H

#include <tupleq/tupleq.h>

/* In the order of the choices in params.def. */
enum tq_protocol { TQ_PROTOCOL_TUPLEQ, TQ_PROTOCOL_COPY, TQ_PROTOCOL_RPUT, TQ_PROTOCOL_RGET };
enum tq_intranode { TQ_INTRANODE_AUTO, TQ_INTRANODE_HCA, TQ_INTRANODE_SHM };
enum tq_odp { TQ_ODP_OFF, TQ_ODP_ON, TQ_ODP_AUTO };
enum tq_rendezvous { TQ_RENDEZVOUS_RGET, TQ_RENDEZVOUS_RPUT };

enum { TQ_PARAM_TEXT_SIZE = 256 }; /* bytes of a STRING, with the 0 at its end */

struct tq_params {
#define BOOL(name, value, level, help)                         bool name;
#define INT(name, value, min, max, level, help)                int64_t name;
#define INT_CHECKED(name, value, min, max, check, level, help) int64_t name;
#define SIZE(name, value, min, max, level, help)               int64_t name;
#define ENUM(name, value, choices, level, help)                int name;
#define STRING(name, value, form, check, level, help)          char name[TQ_PARAM_TEXT_SIZE];
#include "params.def"
#undef BOOL
#undef INT
#undef INT_CHECKED
#undef SIZE
#undef ENUM
#undef STRING
};

#endif
