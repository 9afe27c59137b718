#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# share.sh: receives that name their source, with a mask that they share, are matched by the adapter, as the provider's log says.
set -u

bad=0
for how in "" delivered; do
	what="the adapter matches receives with a shared mask${how:+, whose sends end when they are delivered}"
	# shellcheck disable=SC2086 # a word, or none
	said=$(FI_TUPLEQ_PROMOTE_AFTER=0 FI_LOG_PROV=tupleq FI_LOG_LEVEL=info softhca run --nodes 2 --memlock unlimited -- \
		"$TEST_BUILD/tests/libfabric/test_match" 2 $how 2>&1)
	if ! grep -q FAILED <<<"$said" && grep -qE "The adapter has matched [1-9][0-9]* of 200 messages" <<<"$said"; then
		echo "ok $what"
	else
		echo "not ok $what"
		sed 's/^/# /' <<<"$said"
		bad=1
	fi
done
exit $bad
