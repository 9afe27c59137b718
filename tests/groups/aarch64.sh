# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group aarch64: a cross build, and the units in qemu. Sourced by run.sh.

takes aarch64 130
needs aarch64 gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static mmdebstrap

group_aarch64() {
	wanted aarch64.sh && run aarch64.sh 1500 "$top/tests/aarch64.sh"
	return 0
}
