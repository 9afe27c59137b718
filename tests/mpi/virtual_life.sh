#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# virtual_life.sh - jobs in virtual time end, or go on, after interference from outside: signals to the launcher or to mpirun; ranks
# that are stopped, killed, or leave. TEST_BUILD is the build tree; softhca is in PATH.
endless=${TEST_BUILD:?set it to the build tree}/tests/mpi/endless
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
jobs=0

# start DOING [BEFORE...]: a job of three ranks, with BEFORE in front of softhca; sets run, its pid. All its processes have a
# variable that tells them.
start() {
	local doing=$1
	shift
	jobs=$((jobs + 1))
	export TMPDIR=$tmp/session.$jobs VIRTUAL_LIFE=$tmp.$jobs
	mkdir "$TMPDIR"
	: >"$tmp/out"
	# shellcheck disable=SC2016 # for the job's shell
	"$@" softhca run --clock virtual --clock-cpu 0 --link latency=1us,bandwidth=10GB/s --memlock unlimited --nodes 2 -- \
		sh -c 'echo "fabric $SOFTHCA_FABRIC"; exec "$@"' sh mpirun --oversubscribe -n 3 --mca pml tupleq "$endless" "$doing" >"$tmp/out" 2>&1 &
	run=$!
}

# wait_for COMMAND...: waits until the command succeeds, for 30 s at most.
wait_for() {
	local i
	for ((i = 0; i < 600; i++)); do
		"$@" && return 0
		sleep 0.05
	done
	return 1
}

is_ready() { grep -q ready "$tmp/out"; }
has_ended() { ! kill -0 "$run" 2>/dev/null; }
# processes [NAME]: those of the job, or those with that name.
processes() {
	local p
	grep -lzsx "VIRTUAL_LIFE=$tmp.$jobs" /proc/[0-9]*/environ | cut -d/ -f3 | while read -r p; do
		[ -z "${1-}" ] || [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$1" ] || continue
		# This script's own children have the variable, too.
		case $(cat "/proc/$p/comm" 2>/dev/null) in endless | mpirun | orted | softhca*) echo "$p" ;; esac
	done
}
rank() { processes endless | sed -n 1p; }
left_nothing() { [ -z "$(processes)" ]; }

# must_end NAME STATUSES [PATTERN]: a test, which passes if the job ends with one of these statuses and an output that matches PATTERN,
# and leaves nothing.
must_end() {
	local why='' status
	if wait_for has_ended; then
		wait "$run"
		status=$?
		[[ " $2 " == *" $status "* ]] || why="status $status"
	else
		why="no end in time"
	fi
	wait_for left_nothing || why=${why:-"left: $(processes | tr '\n' ' ')"}
	[ -z "$(ls "$TMPDIR")" ] || why=${why:-"left: $(ls "$TMPDIR")"}
	[ ! -e "$(sed -n 's/^fabric //p' "$tmp/out")" ] || why=${why:-"its fabric is left"}
	grep -Eq "${3-.}" "$tmp/out" || why=${why:-"it doesn't say $3"}
	if [ -z "$why" ]; then
		echo "ok $1"
	else
		echo "not ok $1 - $why"
		sed 's/^/# /' "$tmp/out"
		# shellcheck disable=SC2046 # some words
		kill -KILL $(processes) 2>/dev/null
	fi
}

# signalled DOING SIGNAL WHOM: once the ranks are at it, the launcher (run) or mpirun gets the signal.
signalled() {
	start "$1"
	wait_for is_ready
	case $3 in
	run) kill -"$2" "$run" ;;
	mpirun) kill -"$2" "$(processes mpirun)" ;;
	esac
	must_end "SIG$2 to $3: $1" "1 130 143"
}

# held_up DOING SENTENCE: a sentence says what holds the clock up, and a signal still ends the job.
held_up() {
	start "$1" env SOFTHCA_CLOCK_STALL=2s
	wait_for grep -Eq "$2" "$tmp/out"
	kill -TERM "$run"
	must_end "held up: $1" "1 143" "$2"
}

for doing in ring sleep message; do
	signalled $doing TERM run
	signalled $doing INT mpirun
done
held_up compute 'held up at .* thread [0-9]+ of process [0-9]+ \(endless\) computes; its last call was of kind '
held_up world 'held up at .* thread [0-9]+ of process [0-9]+ \(endless\) waits in the kernel .*; its last call was of kind '
held_up condition 'stands still at .* all threads wait, and nothing is due'
held_up stop 'held up at .* thread [0-9]+ of process [0-9]+ \(endless\) is stopped; its last call was of kind '
signalled ring HUP run

for doing in ring message; do
	start $doing timeout 4
	must_end "timeout: $doing" 124
done

# mpirun has no time to end its ranks.
start ring
wait_for is_ready
kill -KILL "$(processes mpirun)"
wait_for has_ended
rm -rf "${TMPDIR:?}"/*
must_end "mpirun is killed" 137 "sh ended before 3 of its processes, which were in virtual time and have been killed"

start until-continued
wait_for is_ready
stopped=$(rank)
kill -STOP "$stopped"
wait_for grep -qs '^State:.T' "/proc/$stopped/status"
kill -CONT "$stopped"
must_end "a rank is stopped and goes on" 0

start message
wait_for is_ready
kill -KILL "$(rank)"
must_end "a rank is killed" 137 "exited on signal 9"

start leave
must_end "a rank leaves without a word" 3
