# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Runs one program with its tests, and counts the tests that passed, failed and were skipped. Sourced by run.sh.

passed=0 failed=0 skipped=0
skips=()    # the skipped tests, with the reasons
left_out=() # the tests that only --long runs
fails=()    # the programs that failed, each followed by its last lines

# wanted LABEL: true if no names were given, or the label contains one of them.
wanted() {
	local n

	[ ${#names[@]} -gt 0 ] || return 0
	for n in "${names[@]}"; do
		case $1 in *"$n"*) return 0 ;; esac
	done
	return 1
}

# sum WORD FILE: adds up the N of cmocka's lines "[  WORD  ] N test(s)...". cmocka 1.1.7 has "GROUP: " in front of N.
sum() {
	sed -nE "s/^\[ *$1 *\] ([^ ]+: )?([0-9]+) test.*/\2/p" "$2" | awk '{ n += $1 } END { print n + 0 }'
}

# count PATTERN FILE: the number of lines that match.
count() {
	grep -acE "$1" "$2" || true
}

# tally LABEL LOG STATUS: counts a program's tests by its output (cmocka's summary, or lines "ok NAME" and "not ok NAME"). Sets ok,
# bad and skip.
tally() {
	local label=$1 log=$2 status=$3 line

	ok=$(($(sum PASSED "$log") + $(count '^ok ' "$log") - $(count '^ok .*# SKIP' "$log")))
	bad=$(($(sum FAILED "$log") + $(count '^not ok ' "$log")))
	skip=$(($(sum SKIPPED "$log") + $(count '^ok .*# SKIP' "$log")))
	# A program died before its summary: the tests that had passed count.
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

# in_full TESTS: true if this run includes these long tests, by --long or because tests are named. If not, lists them as left out.
in_full() {
	[ -z "$long" ] && [ ${#names[@]} -eq 0 ] || return 0
	left_out+=("$1")
	return 1
}

# skip LABEL REASON: lists a test as skipped, with the reason.
skip() {
	skipped=$((skipped + 1))
	skips+=("$1: $2")
	started+=("$(printf '=%-72s skip: %s' "$1" "$2")")
	show_ended
}

# in_time LABEL: true if TEST_BUDGET leaves time for a test. If not, skips it.
in_time() {
	[ "$SECONDS" -ge "${TEST_BUDGET:-$((SECONDS + 1))}" ] || return 0
	skip "$1" "the $TEST_BUDGET s of TEST_BUDGET were over"
	return 1
}

# keep LOG: copies the log of a failure to the folder failed/ beside it, where the next run of the same program leaves it alone.
keep() {
	local kept

	kept=${1%/*}/failed/$(date +%Y%m%d-%H%M%S)-${1##*/}
	mkdir -p "${kept%/*}"
	cp "$1" "$kept"
	echo "    the log is kept in ${kept#"$top/"}"
}

beside=1            # programs that run at the same time; see side_by_side
started=()          # what is still to be shown, in its order: the processes of programs, and lines behind "="
declare -A began=() # those that still run: by process, "SECOND SECONDS LOG LABEL" with their begin and their limit
declare -A ended=() # those that have ended: "STATUS SECONDS-IT-TOOK SECONDS LOG LABEL"
declare -A said=()  # their commands
declare -A hints=() # what to show below their failures
hint=               # that of the next program

# side_by_side: lets programs run at the same time, until in_turn: half as many again as there are processors, because most programs
# wait for part of their time.
side_by_side() {
	local processors

	processors=$(nproc)
	beside=$((processors + (processors + 1) / 2))
	# Programs in the background would survive an interrupt.
	trap 'kill "${!began[@]}" 2>/dev/null || true' EXIT
	trap 'exit 130' INT TERM
}

# in_turn: waits for all programs that run, and lets one run at a time from now on: those that judge real time, or need all processors.
in_turn() {
	while [ ${#began[@]} -gt 0 ]; do
		await_one
	done
	beside=1
	trap - EXIT INT TERM
}

# report LABEL SECONDS LOG TOOK STATUS COMMAND HINT: counts and shows a program's result, behind its label.
report() {
	local label=$1 limit=$2 log=$3 took=$4 status=$5 ok bad skip

	tally "$label" "$log" "$status"
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	if [ "$bad" -eq 0 ]; then
		printf 'ok   %4d %7.1f s\n' "$ok" "$took"
		return
	fi
	printf 'FAIL %4d %7.1f s\n' "$bad" "$took"
	case $status in
	0) ;;
	124 | 137) echo "    took longer than $limit s and was ended" ;;
	*) echo "    exit status $status" ;;
	esac
	echo "    \$ $6"
	keep "$log"
	tail -n 80 "$log" | sed 's/^/    | /'
	[ -z "$7" ] || echo "    $7"
	fails+=("$label")
	mapfile -t -O ${#fails[@]} fails < <(tail -n 20 "$log" | cut -c1-200 | sed 's/^/    | /')
}

# seconds_since BEGIN: prints the seconds since this EPOCHREALTIME.
seconds_since() {
	awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }'
}

# await_one: waits for one of the programs that run. Shows the results that are due.
await_one() {
	local process status=0 start rest

	wait -n -p process "${!began[@]}" || status=$?
	read -r start rest <<<"${began[$process]}"
	ended[$process]="$status $(seconds_since "$start") $rest"
	unset "began[$process]"
	show_ended
}

# show_ended: shows the results of the programs that have ended, in the order in which they began.
show_ended() {
	local process status took limit log label

	while [ ${#started[@]} -gt 0 ]; do
		process=${started[0]}
		if [[ $process == =* ]]; then
			echo "${process#=}"
		else
			[ -n "${ended[$process]-}" ] || return 0
			read -r status took limit log label <<<"${ended[$process]}"
			printf '%-72s ' "$label"
			report "$label" "$limit" "$log" "$took" "$status" "${said[$process]}" "${hints[$process]}"
			unset "ended[$process]" "said[$process]" "hints[$process]"
		fi
		started=("${started[@]:1}")
	done
}

# run LABEL SECONDS COMMAND...: runs one program with its tests, for SECONDS at most. Side by side, its result comes later.
run() {
	local label=$1 limit=$2 log status=0 start
	shift 2
	while [ ${#began[@]} -ge "$beside" ]; do
		await_one
	done
	in_time "$label" || return 0
	log=$log_dir/$(printf %s "$label" | tr -c 'A-Za-z0-9.=-' _ | cut -c1-200).log
	start=$EPOCHREALTIME
	if [ "$beside" -gt 1 ]; then
		# A shell has its background commands ignore these signals.
		env --default-signal=INT,QUIT timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null &
		started+=($!)
		began[$!]="$start $limit $log $label"
		said[$!]=$*
		hints[$!]=$hint
		return 0
	fi
	printf '%-72s ' "$label"
	timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null || status=$?
	report "$label" "$limit" "$log" "$(seconds_since "$start")" "$status" "$*" "$hint"
}

# pass_or_fail LABEL SECONDS COMMAND...: runs a command as a test, which passes if the exit status is 0.
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
		echo "Left out because they take long (tests/run.sh --long runs them):"
		for s in "${left_out[@]}"; do
			echo "    $s"
		done
	fi
	# Again, because the first report is far up in a long log.
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
