/* SPDX-License-Identifier: BSD-3-Clause */
/* The provider as libfabric sees it. */
#include <stdio.h>

#include <rdma/providers/fi_prov.h>

#include "fabric.h"
#include "info.h"
#include "log.h"
#include "params.h"

static void cleanup(void)
{
	tf_info_cleanup();
}

struct fi_provider tf_provider = {
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = "tupleq",
	.getinfo = tf_getinfo,
	.fabric = tf_fabric_open,
	.cleanup = cleanup,
};

/* The only symbol that libfabric looks for. */
struct fi_provider *fi_prov_ini(void);
__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void)
{
	unsigned major = 0, minor = 0;

	sscanf(TF_VERSION, "%u.%u", &major, &minor);
	tf_provider.version = FI_VERSION(major, minor);
	tf_params_define();
	return &tf_provider;
}
