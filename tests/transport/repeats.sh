#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# repeats.sh - the lines of virtual.list, each run twice or more in virtual time with one seed, have one hash: a seed that failed fails again.
# TEST_BUILD is the build; softhca is in PATH.
build=${TEST_BUILD:?set it to the build}
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export SOFTHCA_CLOCK=virtual SOFTHCA_CLOCK_CPU=0 SOFTHCA_CLOCK_TSC=trap SOFTHCA_CLOCK_REPORT=yes SOFTHCA_CLOCK_SEED=7 SOFTHCA_REORDER=7
export SOFTHCA_LINK=latency=1us,bandwidth=10GB/s

# shellcheck source=tests/check.sh
. "$here/../check.sh"
evidence=$tmp/out

# once LOG LINE: prints the hash of a run.
once() {
	local options program

	read -ra options <<<"${2%% -- *}"
	read -ra program <<<"${2#* -- }"
	softhca run --clock-log "$1" "${options[@]}" -- "$build/tests/transport/${program[0]}" "${program[@]:1}" >"$evidence" 2>&1 </dev/null ||
		return 1
	sed -n 's/.*, hash //p' "$evidence"
}

# lost_turns: true if turns were taken away in the last run. A busy machine makes that happen, and softhca says that such a run may differ
# from others.
lost_turns() {
	grep -q "turns were taken away" "$evidence"
}

# repeats LINE: a run has the hash of an earlier one. Beside the first two there are more runs only if one of them lost turns. If none has
# the hash of another, shows where the last two logs part.
repeats() {
	local hash seen=" " lost="" i

	for i in 1 2 3 4 5; do
		hash=$(once "$tmp/log.$((i % 2))" "$1") && [ -n "$hash" ] || return 1
		[[ $seen != *" $hash "* ]] || return 0
		seen+="$hash "
		! lost_turns || lost=1
		[ "$i" -eq 1 ] || [ -n "$lost" ] || break
	done
	cmp "$tmp/log.0" "$tmp/log.1" >>"$evidence" 2>&1
	diff "$tmp/log.0" "$tmp/log.1" | head -n 20 >>"$evidence"
	return 1
}

while read -r line; do
	check "${line#* -- } [${line%% -- *}]" repeats "$line"
done < <(grep -vE '^(#|$)' "$here/virtual.list")
exit $bad
