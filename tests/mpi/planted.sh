#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# planted.sh - the group seeds finds a race that was planted, and the command that it prints finds the race again, each time with
# the same events. TEST_BUILD is the build.
build=${TEST_BUILD:?set it to the build}
top=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# shellcheck source=tests/check.sh
. "$top/tests/check.sh"
evidence=$tmp/out

# passes: the program passes without a seed.
passes() {
	softhca run --clock virtual --clock-cpu 0 --clock-tsc trap --memlock unlimited --nodes 3 --link latency=1us,bandwidth=10GB/s -- \
		mpirun --allow-run-as-root --oversubscribe -n 3 --mca pml tupleq "$build/tests/mpi/planted" >"$tmp/out" 2>&1
}

finds() {
	! SEED_LISTS=mpi/planted.list TEST_BUDGET=20 "$top/tests/run.sh" --build "$build" seeds >"$tmp/out" 2>&1 &&
		command=$(sed -n 's/^ *repeat it: //p' "$tmp/out" | head -n 1) && [ -n "$command" ] &&
		first=$(hash_of_failure)
}

# hash_of_failure: the first hash behind the first failure in the output of a run.
hash_of_failure() {
	sed -n '/ FAIL /,$s/.*, hash \([0-9a-f]*\)$/\1/p' "$tmp/out" | head -n 1 | grep .
}

# repeats: the command fails again, with the same hash.
repeats() {
	! (cd "$top" && eval "$command") >"$tmp/out" 2>&1 && grep -q "not ok the first message" "$tmp/out" &&
		[ "$(hash_of_failure)" = "$first" ]
}

command='' first=''
check "the race is not there without a seed" passes
check "a seed finds it" finds
check "the command that is printed finds it again" repeats
check "and again" repeats
