# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced by run.sh.

# warn_if_busy LOAD CPUS: warns if other programs keep more than half of the CPUs busy.
warn_if_busy() {
	awk -v load="$1" -v cpus="$2" 'BEGIN { exit !(load > cpus / 2) }' || return 0
	echo "This machine is busy: load $1 on $2 CPUs. Figures will be worthless; stop other programs first." >&2
}
