/* SPDX-License-Identifier: BSD-3-Clause */
#include "atomic.h"

static const enum arith_type types[PTL_DATATYPE_LAST] = {
	[PTL_INT8_T] = ARITH_INT8,
	[PTL_UINT8_T] = ARITH_UINT8,
	[PTL_INT16_T] = ARITH_INT16,
	[PTL_UINT16_T] = ARITH_UINT16,
	[PTL_INT32_T] = ARITH_INT32,
	[PTL_UINT32_T] = ARITH_UINT32,
	[PTL_FLOAT] = ARITH_FLOAT,
	[PTL_INT64_T] = ARITH_INT64,
	[PTL_UINT64_T] = ARITH_UINT64,
	[PTL_DOUBLE] = ARITH_DOUBLE,
	[PTL_FLOAT_COMPLEX] = ARITH_FLOAT_COMPLEX,
	[PTL_DOUBLE_COMPLEX] = ARITH_DOUBLE_COMPLEX,
	[PTL_LONG_DOUBLE] = ARITH_LONG_DOUBLE,
	[PTL_LONG_DOUBLE_COMPLEX] = ARITH_LONG_DOUBLE_COMPLEX,
};

static const enum arith_op ops[PTL_OP_LAST] = {
	[PTL_MIN] = ARITH_MIN,           [PTL_MAX] = ARITH_MAX,
	[PTL_SUM] = ARITH_SUM,           [PTL_PROD] = ARITH_PROD,
	[PTL_LOR] = ARITH_LOR,           [PTL_LAND] = ARITH_LAND,
	[PTL_BOR] = ARITH_BOR,           [PTL_BAND] = ARITH_BAND,
	[PTL_LXOR] = ARITH_LXOR,         [PTL_BXOR] = ARITH_BXOR,
	[PTL_SWAP] = ARITH_SWAP,         [PTL_CSWAP] = ARITH_CSWAP,
	[PTL_CSWAP_NE] = ARITH_CSWAP_NE, [PTL_CSWAP_LE] = ARITH_CSWAP_LE,
	[PTL_CSWAP_LT] = ARITH_CSWAP_LT, [PTL_CSWAP_GE] = ARITH_CSWAP_GE,
	[PTL_CSWAP_GT] = ARITH_CSWAP_GT, [PTL_MSWAP] = ARITH_MSWAP,
};

size_t p4_atomic_type_size(ptl_datatype_t type)
{
	return type < PTL_DATATYPE_LAST ? arith_size(types[type]) : 0;
}

bool p4_atomic_is_valid(ptl_op_t operation, ptl_datatype_t type)
{
	bool logical = operation == PTL_LOR || operation == PTL_LAND || operation == PTL_LXOR;

	if (operation >= PTL_OP_LAST || type >= PTL_DATATYPE_LAST)
		return false;
	/* Portals has logical operations of integers alone. */
	return arith_is_valid(ops[operation], types[type]) &&
	       (!logical || arith_is_integer(types[type]));
}

void p4_atomic_item(union arith_item *item, const void *data, const void *operand,
		    ptl_op_t operation, ptl_datatype_t type)
{
	arith_apply(item, data, operand, ops[operation], types[type]);
}
