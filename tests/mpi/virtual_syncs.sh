#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Sync points of MPI programs in virtual time, and waits until all processes are quiet, whose numbers are what a run costs: those of a
# job that starts and ends, and those of messages while other ranks wait. Where computing takes no time the sync points are the same in
# each run. Needs softhca in PATH, and the programs in $TEST_BUILD/tests/mpi.
set -u
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks=8 messages=2000
log=$(mktemp)
trap 'rm -f "$log" "$log.trace"' EXIT
failed=0

# count PROGRAM ARGUMENT...: runs it, and stores its numbers in $syncs and $waits.
count() {
	syncs='' waits=''
	timeout -k 5 100 softhca run --nodes 4 --memlock unlimited --clock virtual --clock-cpu 0 --clock-tsc trap --clock-report yes \
		--link latency=1us,bandwidth=10GB/s -- \
		mpirun --oversubscribe -n "$ranks" --mca mpi_yield_when_idle 1 --mca pml tupleq "$TEST_BUILD/tests/mpi/$1" "${@:2}" \
		>"$log" 2>&1 </dev/null || return
	syncs=$(sed -n 's/.* \([0-9]*\) sync points.*/\1/p' "$log")
	waits=$(sed -n 's/.* \([0-9]*\) of them for all processes.*/\1/p' "$log")
}

# at_most NUMBER NAME MOST: a test, which passes if the number is at most MOST.
at_most() {
	if [ -n "$1" ] && [ "$1" -le "$3" ]; then
		echo "ok $2: $1"
	else
		echo "not ok $2: ${1:-none}, at most $3 expected"
		sed 's/^/# /' "$log"
		failed=1
	fi
}

count idle 0
at_most "$syncs" "sync points of $ranks ranks that start and end" 4500
at_most "$waits" "waits for all processes of $ranks ranks that start and end" 300
few_syncs=$syncs few_waits=$waits
SOFTHCA_TRACE=$log.trace count idle 0
at_most "$syncs" "sync points of them when they are traced" "$few_syncs"
count idle "$messages"
at_most "${syncs:+$(((syncs - few_syncs) / (2 * messages)))}" "sync points of a message while $((ranks - 2)) ranks wait" 18
at_most "${waits:+$((waits - few_waits))}" "waits for all processes for $messages messages there and back" 150
exit "$failed"
