#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_sysfs.sh - /sys/class/infiniband in shells and in the programs that scripts call. softhca is in PATH.
set -uo pipefail

out=$(mktemp)
trap 'rm -f "$out"' EXIT
bad=0

# shows NAME WANTED COMMAND...: the command prints WANTED, in a fabric of two nodes with two adapters.
shows() {
	local name=$1 wanted=$2
	shift 2
	if timeout 60 softhca run --nodes 2 --devices 2 -- "$@" >"$out" 2>&1 && [ "$(cat "$out")" = "$wanted" ]; then
		echo "ok sysfs: $name"
	else
		echo "not ok sysfs: $name"
		sed 's/^/# /' "$out"
		bad=1
	fi
}

# shellcheck disable=SC2016 # for the inner shells
{
	shows "sh lists a directory" "softhca0 softhca1" sh -c 'echo $(ls /sys/class/infiniband)'
	shows "sh goes there" "softhca0 softhca1" sh -c 'cd /sys/class/infiniband && echo *'
	shows "sh expands a path" "/sys/class/infiniband/softhca0/ports/1 /sys/class/infiniband/softhca1/ports/1" \
		sh -c 'echo /sys/class/infiniband/*/ports/*'
	shows "bash expands a path" "/sys/class/infiniband/softhca0/ports/1 /sys/class/infiniband/softhca1/ports/1" \
		bash -c 'echo /sys/class/infiniband/*/ports/*'
	shows "sh tests and reads" "4: ACTIVE" \
		sh -c 'cd / && p=/sys/class/infiniband/softhca1/ports/1 && [ -d $p ] && [ -r $p/state ] && read -r s <$p/state && echo "$s"'
	shows "bash tests and reads" "4: ACTIVE" \
		bash -c 'p=/sys/class/infiniband/softhca1/ports/1; [[ -d $p && -r $p/state && ! -e $p/nothing ]] && echo "$(<$p/state)"'
	shows "each node has its own" "0x1 0x4" \
		sh -c 'echo $(cat /sys/class/infiniband/softhca0/ports/1/lid; SOFTHCA_NODE=1 cat /sys/class/infiniband/softhca1/ports/1/lid)'
	shows "find finds" "/sys/class/infiniband/softhca0/ports/1/rate" find /sys/class/infiniband/softhca0 -name rate
	shows "vendor and part" "MT4119 0x15b3 0x1017" \
		sh -c 'cd /sys/class/infiniband/softhca0 && echo $(cat hca_type device/vendor device/device)'
	SOFTHCA_VENDOR_ID=0x8086 SOFTHCA_PART_ID=5522 shows "another vendor and part" "softhca 0x8086 0x1592" \
		sh -c 'cd /sys/class/infiniband/softhca0 && echo $(cat hca_type device/vendor device/device)'
	shows "ls -l tells" "" sh -c 'ls -lR /sys/class/infiniband 2>&1 >/dev/null'
	shows "stat tells" "directory" stat -c %F /sys/class/infiniband/softhca1
	shows "grep reads" "InfiniBand" grep -h . /sys/class/infiniband/softhca0/ports/1/link_layer
	shows "Python lists, expands and reads" "['softhca0', 'softhca1'] 2 1: CA" python3 -c '
import glob, os
base = "/sys/class/infiniband"
print(sorted(os.listdir(base)), len(glob.glob(base + "/*/ports/1")), open(base + "/softhca0/node_type").read().strip())'
}
if [ -e /sys/class/infiniband ]; then
	echo "ok sysfs: nothing outside of a fabric # SKIP this machine has adapters"
elif LD_PRELOAD=${SOFTHCA_LIBRARY-} ls /sys/class/infiniband >"$out" 2>&1 || grep -q softhca: "$out"; then
	echo "not ok sysfs: nothing outside of a fabric"
	bad=1
else
	echo "ok sysfs: nothing outside of a fabric"
fi
exit $bad
