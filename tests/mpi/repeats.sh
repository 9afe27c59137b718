#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# repeats.sh [RANKS] - runs of MPI programs in virtual time, where computing takes no time, have the same events: each program
# is run several times, and all runs have one hash. Without RANKS: 2 and 8. TEST_BUILD is the build. Where hashes differ, the
# logs of two runs show what differed first.
build=${TEST_BUILD:?set it to the build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export TEST_DEADLINE=200

# Process ids are the same in each run where we may make a namespace for them. Strings with them decide where a buffer lies on the
# heap, and so whether it shares a page with one that is registered already.
namespace=(unshare --pid --fork --mount-proc --kill-child)
"${namespace[@]}" true 2>/dev/null || namespace=()
# Open MPI's files, which have the id of mpirun in their names, are those of this script alone.
mkdir "$tmp/session"
export TMPDIR=$tmp/session

# once LOG NODES RANKS OPTIONS PROGRAM ARGUMENT...: prints the hash of a run.
once() {
	local log=$1 nodes=$2 ranks=$3 options
	read -ra options <<<"$4"
	shift 4
	"${namespace[@]}" softhca run --clock virtual --clock-cpu 0 --clock-tsc trap --clock-report yes --clock-log "$log" --memlock unlimited \
		--link latency=1us,bandwidth=10GB/s --nodes "$nodes" "${options[@]}" -- \
		mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n "$ranks" --mca pml tupleq \
		"$build/tests/mpi/$1" "${@:2}" >"$tmp/out" 2>&1 </dev/null || return 1
	sed -n 's/.*, hash //p' "$tmp/out"
}

# show_difference A B: the first lines that differ of two logs, with the events before them.
show_difference() {
	local line

	line=$(cmp "$1" "$2" | sed 's/.*line //')
	[ -n "$line" ] || return 0
	for log; do
		echo "# $log, from line $((line > 5 ? line - 5 : 1)):"
		tail -n "+$((line > 5 ? line - 5 : 1))" "$log" | head -n 10 | sed 's/^/#     /'
	done
}

# repeats RUNS NODES RANKS OPTIONS PROGRAM ARGUMENT...: one test.
repeats() {
	local runs=$1 name="$3 ranks, --nodes $2${4:+ [$4]}: ${*:5}" first='' hash i disturbed=0
	shift

	for ((i = 0; i < runs; i++)); do
		hash=$(once "$tmp/log.$((i > 0))" "$@") || {
			echo "not ok $name, run $((i + 1))"
			sed 's/^/# /' "$tmp/out"
			return
		}
		# A busy machine takes turns away, and such a run may differ from others: it counts as none.
		if [ "$hash" != "$first" ] && grep -q 'taken away' "$tmp/out" && [ $((disturbed++)) -lt 5 ]; then
			i=$((i - 1))
			continue
		fi
		if [ -n "$first" ] && [ "$hash" != "$first" ]; then
			echo "not ok $name: run 1 has hash $first, run $((i + 1)) has $hash"
			show_difference "$tmp/log.0" "$tmp/log.1"
			grep 'taken away' "$tmp/out" | sed 's/^/# /'
			return
		fi
		first=$hash
	done
	case $first in
	????????????????) echo "ok $name, $runs times" ;;
	*) echo "not ok $name: there is no hash" ;;
	esac
}

case ${1-} in
'')
	repeats 10 2 2 "" size
	repeats 3 2 2 "" order 1
	repeats 3 2 2 "--clock-seed 5 --reorder 3 --fault-seed 7 --fault-drop 0.001 --fault-rnr 0.01 --fault-delay 0.005" order 2 300
	repeats 10 4 8 "" size
	OMPI_MCA_pml_tupleq_intranode=auto repeats 5 1 8 "" size
	OMPI_MCA_pml_tupleq_intranode=auto repeats 3 1 4 "--clock-seed 6" order 1
	repeats 3 8 8 "--clock-seed 6" barrier 5 40 8
	;;
*) repeats 10 8 "$1" "" size ;;
esac
