# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Tells run.sh, which sources this file, how busy the machine is.

# busy_cpus: prints how many CPUs are in use now: the CPU time of all programs in half a second, and the time that other virtual
# machines took, divided by that half second. The load average isn't used, because it shows an earlier run for minutes.
busy_cpus() {
	local before after
	before=$(grep '^cpu ' /proc/stat)
	sleep 0.5
	after=$(grep '^cpu ' /proc/stat)
	awk -v cpus="$(nproc --all)" '
		# Fields: user, nice, system, idle, waiting for a disk, interrupts, soft interrupts, stolen.
		{ sign = NR == 1 ? -1 : 1; idle += sign * ($5 + $6); for (i = 2; i <= 9; i++) all += sign * $i }
		END { printf "%.2f\n", (all > 0 ? cpus * (all - idle) / all : 0) }' <<<"$before"$'\n'"$after"
}

# warn_if_busy BUSY CPUS: warns if other programs keep more than half of the CPUs busy. Targets aren't judged then (BENCH_BUSY).
warn_if_busy() {
	awk -v busy="$1" -v cpus="$2" 'BEGIN { exit !(busy > cpus / 2) }' || return 0
	export BENCH_BUSY="$1 of $2"
	echo "This machine is busy: $1 of $2 CPUs are in use. Figures will be worthless; stop other programs first." >&2
}
