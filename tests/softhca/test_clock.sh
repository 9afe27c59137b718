#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_clock.sh - virtual time by the launcher: its refusals and messages, and runs that repeat exactly. SOFTHCA is the program,
# TEST_BUILD the build.
softhca=${SOFTHCA:?set it to the path of softhca}
tests=${TEST_BUILD:?set it to the build}/tests/softhca
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$tmp/err
: >"$evidence"

# refused TEXT OPTION...: the launcher exits with status 2 and a sentence with TEXT.
refused() {
	local text=$1 status=0
	shift
	"$softhca" run "$@" -- true 2>"$tmp/err" || status=$?
	[ "$status" -eq 2 ] && grep -q -- "$text" "$tmp/err"
}

link_is_said() {
	"$softhca" run --clock virtual -- true 2>"$tmp/err" && grep -q "no link is given: --link latency" "$tmp/err"
}

# hash SEED: the hash of a run.
hash() {
	"$softhca" run --clock virtual --clock-cpu 0 --clock-seed "$1" --clock-report yes --memlock unlimited --nodes 2 \
		--link latency=1us,bandwidth=10GB/s -- "$tests/test_qp_work" 2>"$tmp/err" >/dev/null || return 1
	sed -n 's/.*hash //p' "$tmp/err"
}

# repeats SEED N: N runs have the same hash.
repeats() {
	local i
	for ((i = 0; i < $2; i++)); do
		hash "$1" || return 1
	done | sort -u >"$tmp/hashes"
	[ "$(wc -l <"$tmp/hashes")" -eq 1 ] && grep -q '^[0-9a-f]\{16\}$' "$tmp/hashes"
}

differ() {
	[ "$(hash 1)" != "$(hash 2)" ]
}

stat_shows() {
	"$softhca" run --clock virtual --link latency=1us -- "$softhca" stat --json >"$tmp/err" &&
		grep -q '"hash"' "$tmp/err" && grep -q '"actors"' "$tmp/err"
}

check "a clock that there isn't" refused "use one of real|virtual" --clock other
check "a factor that is no number" refused "use a number from 0" --clock virtual --clock-cpu fast
check "a negative price" refused "use a time from" --clock virtual --price-post -1
check "a seed that is no number" refused "use a whole number" --clock virtual --clock-seed x
check "a link is taken and said" link_is_said
check "stat shows the clock" stat_shows
check "ten runs, one hash" repeats 0 10
check "a seed repeats" repeats 7 3
check "seeds differ" differ
exit $status
