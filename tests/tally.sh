# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Runs one program with its tests, and counts what passed, failed and was skipped. Sourced by run.sh.

passed=0 failed=0 skipped=0
skips=()    # what was skipped, and why
left_out=() # what only --long runs
fails=()    # what failed, and the last that it said

wanted() {
	local n

	[ ${#names[@]} -gt 0 ] || return 0
	for n in "${names[@]}"; do
		case $1 in *"$n"*) return 0 ;; esac
	done
	return 1
}

# sum WORD FILE: the sum of the tests in cmocka's lines "[  WORD  ] N test(s)...", in front of whose N cmocka 1.1.7 has "GROUP: ".
sum() {
	sed -nE "s/^\[ *$1 *\] ([^ ]+: )?([0-9]+) test.*/\2/p" "$2" | awk '{ n += $1 } END { print n + 0 }'
}

count() {
	grep -acE "$1" "$2" || true
}

# Adds what a program printed (cmocka's summary, or lines "ok NAME" and "not ok NAME") to the totals.
# tally LABEL LOG STATUS: sets ok, bad and skip.
tally() {
	local label=$1 log=$2 status=$3 line

	ok=$(($(sum PASSED "$log") + $(count '^ok ' "$log") - $(count '^ok .*# SKIP' "$log")))
	bad=$(($(sum FAILED "$log") + $(count '^not ok ' "$log")))
	skip=$(($(sum SKIPPED "$log") + $(count '^ok .*# SKIP' "$log")))
	# A program that died before its summary: what it had passed counts.
	[ $((ok + bad + skip)) -gt 0 ] || ok=$(count '^\[       OK \] ' "$log")
	if [ "$bad" -eq 0 ] && { [ "$status" -ne 0 ] || [ $((ok + skip)) -eq 0 ]; }; then
		bad=1
	fi
	while IFS= read -r line; do
		skips+=("$label: $line")
	done < <(awk '/^ok .* # SKIP/ { sub(/^ok /, ""); sub(/ # SKIP */, ": "); print }
		/^\[  SKIPPED \] / && !/[0-9] test\(s\)/ { sub(/^\[  SKIPPED \] /, ""); if (!seen[$0]++) print $0 ": " reason }
		{ reason = /^skipped: / ? substr($0, 10) : "no reason given" }' "$log")
}

# in_full WHAT: does this run have time for what is long? --long says so, or a name that asks for it. If not, it is listed.
in_full() {
	[ -z "$long" ] && [ ${#names[@]} -eq 0 ] || return 0
	left_out+=("$1")
	return 1
}

# skip LABEL REASON: what doesn't run is listed with its reason.
skip() {
	printf '%-72s skip: %s\n' "$1" "$2"
	skipped=$((skipped + 1))
	skips+=("$1: $2")
}

# in_time LABEL: is there time left for it? If not, it is skipped.
in_time() {
	[ "$SECONDS" -ge "${TEST_BUDGET:-$((SECONDS + 1))}" ] || return 0
	skip "$1" "the $TEST_BUDGET s of TEST_BUDGET were over"
	return 1
}

# run LABEL SECONDS COMMAND...: one program with its tests.
run() {
	local label=$1 limit=$2 log status=0 ok bad skip start=$EPOCHREALTIME
	shift 2
	in_time "$label" || return 0
	log=$log_dir/$(printf %s "$label" | tr -c 'A-Za-z0-9.=-' _ | cut -c1-200).log

	printf '%-72s ' "$label"
	timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null || status=$?
	tally "$label" "$log" "$status"
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	if [ "$bad" -eq 0 ]; then
		printf 'ok   %4d' "$ok"
	else
		printf 'FAIL %4d' "$bad"
	fi
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf " %7.1f s\n", b - a }'
	[ "$bad" -gt 0 ] || return 0
	case $status in
	0) ;;
	124 | 137) echo "    it took longer than $limit s and was ended" ;;
	*) echo "    exit status $status" ;;
	esac
	echo "    \$ $*"
	tail -n 80 "$log" | sed 's/^/    | /'
	fails+=("$label")
	mapfile -t -O ${#fails[@]} fails < <(tail -n 20 "$log" | cut -c1-200 | sed 's/^/    | /')
}

# pass_or_fail LABEL SECONDS COMMAND...: a command that is a test by its exit status.
pass_or_fail() {
	run "$1" "$2" "$top/tests/as_test" "$1" "${@:3}"
}

summary() {
	local s

	if [ ${#skips[@]} -gt 0 ]; then
		echo "Skipped:"
		for s in "${skips[@]}"; do
			echo "    $s"
		done
	fi
	if [ ${#left_out[@]} -gt 0 ]; then
		echo "Left out, as it takes long (tests/run.sh --long runs it):"
		for s in "${left_out[@]}"; do
			echo "    $s"
		done
	fi
	# Again, as it is far up in a long log.
	if [ ${#fails[@]} -gt 0 ]; then
		echo "Failed:"
		for s in "${fails[@]}"; do
			echo "    $s"
		done
	fi
	if [ "$skipped" -gt 0 ]; then
		echo "$passed passed, $failed failed, $skipped skipped"
	else
		echo "$passed passed, $failed failed"
	fi
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}
