#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Frees and reuses memory under preloaded allocators. jemalloc gives memory back to the kernel at once or after some time, also in
# a thread of its own. tcmalloc has its own functions in front of munmap() and others, which Open MPI's hooks don't see.
set -u
# shellcheck source=tests/mpi/job.sh
. "$(dirname "$0")/job.sh"
# One-sided operations, if Open MPI can translate them into messages.
osc=() rma=()
case $(ompi_info --parsable) in *mca:osc:pt2pt:*) osc=(--mca osc pt2pt) rma=(rma) ;; esac

# job PROTOCOL ALLOCATOR SETTING PROGRAM ARGUMENT...
job() {
	local protocol=$1 library=$2 setting=$3 name
	shift 3
	name="allocators: $library${setting:+ $setting}, $protocol, $*"
	# Only the program gets the allocator: the launchers aren't tested here.
	# shellcheck disable=SC2016 # expanded by that shell
	if mpi_job 100 2 --memlock unlimited -- --mca pml_tupleq_protocol "$protocol" "${osc[@]}" \
		sh -c 'export LD_PRELOAD="$LD_PRELOAD:$0"; exec "$@"' "$library" \
		env ${setting:+"$setting"} "$TEST_BUILD/tests/mpi/$1" "${@:2}" &&
		grep -aq '^ok' "$log" && ! grep -aq -e '^not ok' -e 'cannot be preloaded' "$log"; then
		passed "$name"
	else
		failed "$name" "it should work"
	fi
}

# A user's PATH may lack ldconfig.
libraries=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p) || exit 1

# suite ALLOCATOR SETTING PROTOCOL...
suite() {
	local library=$1 setting=$2 protocol
	shift 2
	if ! grep -q "^[[:space:]]*$library " <<<"$libraries"; then
		echo "ok allocators: $library # SKIP it is not installed"
		return
	fi
	for protocol; do
		job "$protocol" "$library" "$setting" unmap heap
		job "$protocol" "$library" "$setting" unmap threads 5
	done
	job tupleq "$library" "$setting" memory
	job tupleq "$library" "$setting" unmap many segments shared coll "${rma[@]}"
}

suite libjemalloc.so.2 MALLOC_CONF=cache_oblivious:false tupleq
suite libjemalloc.so.2 MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0 tupleq rget
suite libjemalloc.so.2 MALLOC_CONF=dirty_decay_ms:5,background_thread:true tupleq
suite libtcmalloc_minimal.so.4 '' tupleq rget
exit $bad
