#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Sync points of MPI programs in virtual time, whose number is what a run costs: those of a job that starts and ends, and those of a
# message while other ranks wait. Where computing takes no time they are the same in each run. It needs softhca in PATH, and the
# programs in $TEST_BUILD/tests/mpi.
set -u
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks=8 messages=2000
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

# count PROGRAM ARGUMENT...: prints how many sync points a run has.
count() {
	timeout -k 5 100 softhca run --nodes 4 --memlock unlimited --clock virtual --clock-cpu 0 --clock-tsc trap --clock-report yes \
		--link latency=1us,bandwidth=10GB/s -- \
		mpirun --oversubscribe -n "$ranks" --mca mpi_yield_when_idle 1 --mca pml tupleq "$TEST_BUILD/tests/mpi/$1" "${@:2}" \
		>"$log" 2>&1 </dev/null || return
	sed -n 's/.* \([0-9]*\) sync points.*/\1/p' "$log"
}

# check NAME NUMBER MOST: one test.
check() {
	if [ -n "$2" ] && [ "$2" -le "$3" ]; then
		echo "ok $1: $2 sync points"
	else
		echo "not ok $1: ${2:-no} sync points, at most $3 expected"
		sed 's/^/# /' "$log"
		failed=1
	fi
}

few=$(count idle 0)
check "$ranks ranks start and end" "$few" 5000
many=$(count idle "$messages")
[ -z "$few" ] || [ -z "$many" ] || many=$(((many - few) / (2 * messages)))
check "a message while $((ranks - 2)) ranks wait" "$many" 18
exit "$failed"
