#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# share.sh: receives that name their source, with a mask that they share, are matched by the adapter, as the provider's log says.
set -u

said=$(FI_TUPLEQ_PROMOTE_AFTER=0 FI_LOG_PROV=tupleq FI_LOG_LEVEL=info softhca run --nodes 2 --memlock unlimited -- \
	"$TEST_BUILD/tests/libfabric/test_match" 2 2>&1)
if grep -qE "The adapter has matched [1-9][0-9]* of 200 messages" <<<"$said"; then
	echo "ok the adapter matches receives with a shared mask"
else
	echo "not ok the adapter matches receives with a shared mask"
	sed 's/^/# /' <<<"$said"
	exit 1
fi
