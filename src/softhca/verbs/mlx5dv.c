/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mlx5dv.c - questions to the driver mlx5 that programs ask any adapter. perftest 25 asks each one
 * for an ability of mlx5, and gives up if the question is refused.
 */
#pragma GCC visibility push(default)
#include <infiniband/mlx5dv.h>
#pragma GCC visibility pop

/* Answers that the device has none of the abilities of mlx5. */
int mlx5dv_query_device(struct ibv_context *context, struct mlx5dv_context *attr)
{
	(void)context;
	attr->version = 0;
	attr->flags = 0;
	attr->comp_mask = 0;
	return 0;
}
