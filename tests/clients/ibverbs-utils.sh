# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Programs of Debian's ibverbs-utils.

: "${clients:?set by tests/run.sh}"

alone ibv_devices -- ibv_devices
alone ibv_devinfo -- ibv_devinfo
alone ibv_devinfo-v -- ibv_devinfo -v
alone ibv_devinfo-of-4-devices --devices 4 -- ibv_devinfo -d softhca3

for nodes in 1 2; do
	for kind in rc uc ud srq xsrq; do
		pair "ibv_${kind}_pingpong" "$nodes" ibv_${kind}_pingpong -n 200
		pair "ibv_${kind}_pingpong-events" "$nodes" ibv_${kind}_pingpong -n 200 -e
	done
done
pair ibv_rc_pingpong-1M 2 ibv_rc_pingpong -n 20 -s 1048576
pair ibv_rc_pingpong-checked 2 ibv_rc_pingpong -n 200 -c

alone ibv_devinfo-v-RoCE --link-layer ethernet -- ibv_devinfo -v
for gid in 0 1 2 3; do
	for kind in rc uc ud srq xsrq; do
		alone "ibv_${kind}_pingpong-RoCE-GID-$gid" --nodes 2 --link-layer ethernet -- \
			"$clients/pair" 1 ibv_${kind}_pingpong -n 200 -g "$gid"
	done
done
