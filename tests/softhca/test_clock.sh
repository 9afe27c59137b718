#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_clock.sh - virtual time as the launcher offers it: what it refuses and says, and whether runs repeat.
# SOFTHCA is the program, TEST_BUILD the build.
softhca=${SOFTHCA:?set it to the path of softhca}
tests=${TEST_BUILD:?set it to the build}/tests/softhca
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# check NAME COMMAND...: one test.
check() {
	local name=$1
	shift
	if "$@"; then
		echo "ok $name"
	else
		echo "not ok $name"
		cat "$tmp/err"
	fi
}

# refused TEXT OPTION...: exit status 2, and a sentence with TEXT.
refused() {
	local text=$1 status=0
	shift
	"$softhca" run "$@" -- true 2>"$tmp/err" || status=$?
	[ "$status" -eq 2 ] && grep -q -- "$text" "$tmp/err"
}

link_is_said() {
	"$softhca" run --clock virtual -- true 2>"$tmp/err" && grep -q "no link is given: --link latency" "$tmp/err"
}

# hash SEED: of a run.
hash() {
	"$softhca" run --clock virtual --clock-cpu 0 --clock-seed "$1" --clock-report yes --memlock unlimited --nodes 2 \
		--link latency=1us,bandwidth=10GB/s -- "$tests/test_qp_work" 2>"$tmp/err" >/dev/null || return 1
	sed -n 's/.*hash //p' "$tmp/err"
}

# repeats SEED N: N runs have one hash.
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

# logs: as many lines as there are sync points, and more for completions; and two logs are the same.
logs() {
	local i

	for i in 1 2; do
		"$softhca" run --clock virtual --clock-cpu 0 --clock-report yes --memlock unlimited --nodes 2 --clock-log "$tmp/log.$i" \
			--link latency=1us,bandwidth=10GB/s -- "$tests/test_qp_work" 2>"$tmp/err" >/dev/null || return 1
	done
	[ "$(grep -cv completion "$tmp/log.1")" -eq "$(sed -n 's/.* time, \([0-9]*\) sync.*/\1/p' "$tmp/err")" ] &&
		grep -q 'completion: opcode' "$tmp/log.1" && cmp "$tmp/log.1" "$tmp/log.2" >"$tmp/err"
}

stat_shows() {
	"$softhca" run --clock virtual --link latency=1us -- "$softhca" stat --json >"$tmp/err" &&
		grep -q '"hash"' "$tmp/err" && grep -q '"actors"' "$tmp/err"
}

check "a clock that there isn't" refused "use one of real|virtual" --clock other
check "a factor that is no number" refused "use a number from 0" --clock virtual --clock-cpu fast
check "a negative price" refused "use a time from" --clock virtual --price-post -1
check "a seed that is no number" refused "use a whole number" --clock virtual --clock-seed x
check "a log that can't be written" refused "cannot write to" --clock virtual --clock-log /nowhere/log
check "a link is taken and said" link_is_said
check "stat shows the clock" stat_shows
check "ten runs, one hash" repeats 0 10
check "the log of the events" logs
check "a seed repeats" repeats 7 3
check "seeds differ" differ
