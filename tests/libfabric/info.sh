#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# info.sh: what fi_info shows of the provider: a port, the parameters, and nothing without an adapter or for wishes that can't be met.
set -u

bad=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# check NAME COMMAND...: runs a command, whose result is that of a test.
check() {
	local name=$1
	shift
	if "$@" >"$out" 2>&1; then
		echo "ok $name"
	else
		echo "not ok $name"
		sed 's/^/# /' "$out"
		bad=1
	fi
}

# shows PATTERN NUMBER COMMAND...: true if as many lines of the command's output match.
shows() {
	local pattern=$1 number=$2 said

	said=$("${@:3}" 2>&1)
	echo "$said"
	[ "$(grep -cE "$pattern" <<<"$said")" -eq "$number" ]
}

# refuses COMMAND...: true if fi_info finds nothing.
refuses() {
	local said
	said=$("$@" 2>&1) && return 1
	echo "$said"
	[[ $said == *"fi_getinfo: -61"* ]]
}

check "the provider is found by softhca run" shows '^provider: tupleq' 1 env -u FI_PROVIDER_PATH softhca run -- fi_info -p tupleq
check "the provider is found by env.sh" shows '^provider: tupleq' 1 softhca run -- fi_info -p tupleq
check "reliable datagrams" shows 'type: FI_EP_RDM' 1 softhca run -- fi_info -p tupleq
check "a port and all else of an entry" shows '^ *(fi_tx_attr|fi_fabric_attr|fi_device_attr|network_type):' 4 \
	softhca run -- fi_info -p tupleq -v
check "room for sends" shows '^ *size: 77$' 1 env FI_TUPLEQ_TX_SIZE=77 softhca run -- fi_info -p tupleq -v
check "too much room for sends" shows 'size: 65536$|FI_TUPLEQ_TX_SIZE has to be' 3 \
	env FI_LOG_LEVEL=warn FI_TUPLEQ_TX_SIZE=77777777 softhca run -- fi_info -p tupleq -v
check "parameters" shows '^# FI_TUPLEQ_(IF_INCLUDE|KEY|TUPLES|TX_SIZE):' 4 fi_info -e
check "no adapter, no entry" refuses fi_info -p tupleq
check "no stream endpoints" refuses softhca run -- fi_info -p tupleq -t FI_EP_MSG
check "no capability that it lacks" refuses softhca run -- fi_info -p tupleq -c FI_MULTICAST
exit $bad
