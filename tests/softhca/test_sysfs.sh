#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_sysfs.sh - /sys/class/infiniband in shells and in the programs that scripts call. softhca is in PATH, and
# SOFTHCA_LIBRARY is libsofthca.so.
set -uo pipefail
: "${SOFTHCA_LIBRARY:?set it to libsofthca.so}"

out=$(mktemp)
trap 'rm -f "$out"' EXIT
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$out

# prints WANTED COMMAND...: returns true if the command prints WANTED, in a fabric of two nodes with two adapters.
prints() {
	local wanted=$1
	shift
	timeout 60 softhca run --nodes 2 --devices 2 -- "$@" >"$out" 2>&1 && [ "$(cat "$out")" = "$wanted" ]
}

# is_missing: returns true if there is no adapter for a program that has the library but no fabric.
is_missing() {
	! LD_PRELOAD=$SOFTHCA_LIBRARY ls /sys/class/infiniband >"$out" 2>&1 && ! grep -q softhca: "$out"
}

# shellcheck disable=SC2016 # for the inner shells
{
	check "sysfs: sh lists a directory" prints "softhca0 softhca1" sh -c 'echo $(ls /sys/class/infiniband)'
	check "sysfs: sh changes into the folder" prints "softhca0 softhca1" sh -c 'cd /sys/class/infiniband && echo *'
	check "sysfs: sh expands a path" prints "/sys/class/infiniband/softhca0/ports/1 /sys/class/infiniband/softhca1/ports/1" \
		sh -c 'echo /sys/class/infiniband/*/ports/*'
	check "sysfs: bash expands a path" prints "/sys/class/infiniband/softhca0/ports/1 /sys/class/infiniband/softhca1/ports/1" \
		bash -c 'echo /sys/class/infiniband/*/ports/*'
	check "sysfs: sh tests and reads" prints "4: ACTIVE" \
		sh -c 'cd / && p=/sys/class/infiniband/softhca1/ports/1 && [ -d $p ] && [ -r $p/state ] && read -r s <$p/state && echo "$s"'
	check "sysfs: bash tests and reads" prints "4: ACTIVE" \
		bash -c 'p=/sys/class/infiniband/softhca1/ports/1; [[ -d $p && -r $p/state && ! -e $p/nothing ]] && echo "$(<$p/state)"'
	check "sysfs: each node has its own" prints "0x1 0x4" \
		sh -c 'echo $(cat /sys/class/infiniband/softhca0/ports/1/lid; SOFTHCA_NODE=1 cat /sys/class/infiniband/softhca1/ports/1/lid)'
	check "sysfs: find finds" prints "/sys/class/infiniband/softhca0/ports/1/rate" find /sys/class/infiniband/softhca0 -name rate
	check "sysfs: vendor and part" prints "MT4119 0x15b3 0x1017" \
		sh -c 'cd /sys/class/infiniband/softhca0 && echo $(cat hca_type device/vendor device/device)'
	SOFTHCA_VENDOR_ID=0x8086 SOFTHCA_PART_ID=5522 check "sysfs: another vendor and part" prints "softhca 0x8086 0x1592" \
		sh -c 'cd /sys/class/infiniband/softhca0 && echo $(cat hca_type device/vendor device/device)'
	check "sysfs: a port's interface by the folder of its adapter" prints "ib1 1 32 4092 up" \
		sh -c 'cd /sys/class/infiniband/softhca1/device/net && echo * $(cd /sys/class/net/$(echo *) && cat carrier type mtu operstate)'
	SOFTHCA_LINK_LAYER=ethernet check "sysfs: a RoCE port's interface by its GIDs" prints "roce1 softhca1 1 4200 7701 0x15b3" \
		sh -c 'n=$(cat /sys/class/infiniband/softhca1/ports/1/gid_attrs/ndevs/5) && cd /sys/class/net/$n &&
			echo $n $(ls device/infiniband) $(cat type mtu ifindex device/vendor)'
	SOFTHCA_LINK_LAYER=ethernet SOFTHCA_LINK=latency=1us,bandwidth=50GB/s check "sysfs: an interface has the port's speed" prints 400000 \
		cat /sys/class/net/roce0/speed
	check "sysfs: the machine's interfaces stay" prints "/sys/class/net/lo" \
		sh -c 'ls -d /sys/class/net/lo /sys/class/net/ib77 2>/dev/null; true'
	check "sysfs: ls -lR reports no error" prints "" sh -c 'ls -lR /sys/class/infiniband 2>&1 >/dev/null'
	check "sysfs: stat names a directory" prints "directory" stat -c %F /sys/class/infiniband/softhca1
	check "sysfs: grep reads" prints "InfiniBand" grep -h . /sys/class/infiniband/softhca0/ports/1/link_layer
	check "sysfs: Python lists, expands and reads" prints "['softhca0', 'softhca1'] 2 1: CA" python3 -c '
import glob, os
base = "/sys/class/infiniband"
print(sorted(os.listdir(base)), len(glob.glob(base + "/*/ports/1")), open(base + "/softhca0/node_type").read().strip())'
}
if [ -e /sys/class/infiniband ]; then
	echo "ok sysfs: nothing outside of a fabric # SKIP this machine has adapters"
else
	check "sysfs: nothing outside of a fabric" is_missing
fi
exit "$bad"
