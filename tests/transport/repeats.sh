#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# repeats.sh - the lines of virtual.list, each run twice in virtual time with one seed, have one hash: a seed that failed fails again.
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

# undisturbed LOG LINE: prints the hash of a run from which no turn was taken away. A busy machine makes that happen, and softhca says that
# such a run may differ from others.
undisturbed() {
	local hash

	for _ in 1 2 3 4 5; do
		hash=$(once "$@") || return 1
		grep -q "turns were taken away" "$evidence" || break
	done
	echo "$hash"
}

# repeats LINE: two runs have one hash. If not, shows where their logs part.
repeats() {
	local first second

	first=$(undisturbed "$tmp/log.1" "$1") && second=$(undisturbed "$tmp/log.2" "$1") || return 1
	if [ -n "$first" ] && [ "$first" = "$second" ]; then
		return 0
	fi
	cmp "$tmp/log.1" "$tmp/log.2" >>"$evidence" 2>&1
	diff "$tmp/log.1" "$tmp/log.2" | head -n 20 >>"$evidence"
	return 1
}

while read -r line; do
	check "${line#* -- } [${line%% -- *}]" repeats "$line"
done < <(grep -vE '^(#|$)' "$here/virtual.list")
exit $bad
