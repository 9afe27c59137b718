#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Memory that comes and goes under other allocators than the C library's, preloaded: jemalloc, which gives memory back when it
# is asked to or after some time, also in a thread of its own; and tcmalloc, which has functions of its own in front of munmap()
# and others, which Open MPI's hooks don't see. It needs softhca in PATH, and the test programs in $TEST_BUILD/tests/mpi.
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT
bad=0

# job PROTOCOL ALLOCATOR SETTING PROGRAM ARGUMENT...
job() {
	local protocol=$1 library=$2 setting=$3 name
	shift 3
	name="allocators: $library${setting:+ $setting}, $protocol, $*"
	# Only the program has it: the launchers aren't tested here.
	# shellcheck disable=SC2016 # expanded by that shell
	if timeout -k 5 100 softhca run --nodes 2 --memlock unlimited -- \
		mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 \
		-n 2 --mca pml tupleq --mca pml_tupleq_protocol "$protocol" --mca osc pt2pt \
		sh -c 'export LD_PRELOAD="$LD_PRELOAD:$0"; exec "$@"' "$library" \
		env ${setting:+"$setting"} "$TEST_BUILD/tests/mpi/$1" "${@:2}" >"$log" 2>&1 &&
		grep -aq '^ok' "$log" && ! grep -aq -e '^not ok' -e 'cannot be preloaded' "$log"; then
		echo "ok $name"
	else
		echo "not ok $name"
		sed 's/^/# /' "$log"
		bad=1
	fi
}

# suite ALLOCATOR SETTING
suite() {
	local library=$1 setting=$2 protocol
	if ! ldconfig -p | grep -q "^[[:space:]]*$library "; then
		echo "ok allocators: $library # SKIP it is not installed"
		return
	fi
	for protocol in tupleq rget; do
		job "$protocol" "$library" "$setting" unmap heap
		job "$protocol" "$library" "$setting" unmap threads 5
	done
	job tupleq "$library" "$setting" memory
	job tupleq "$library" "$setting" unmap many segments shared coll rma
}

suite libjemalloc.so.2 MALLOC_CONF=cache_oblivious:false
suite libjemalloc.so.2 MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0
suite libjemalloc.so.2 MALLOC_CONF=dirty_decay_ms:5,background_thread:true
suite libtcmalloc_minimal.so.4 ''
exit $bad
