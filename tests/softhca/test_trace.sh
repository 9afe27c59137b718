#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_trace.sh - softhca run --trace: the contents of the file in real and in virtual time, and after processes were
# killed; and refusals. SOFTHCA is the program, TEST_BUILD the build.
softhca=${SOFTHCA:?set it to the path of softhca}
tests=${TEST_BUILD:?set it to the build}/tests/softhca
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'umount "$tmp/small" 2>/dev/null; rm -rf "$tmp"' EXIT

# shellcheck source=tests/check.sh
. "$here/../check.sh"
evidence=$tmp/err

# trace FILE OPTION... -- COMMAND...: runs COMMAND with a trace, in one fabric of two nodes.
trace() {
	local file=$1
	shift
	"$softhca" run --nodes 2 --memlock unlimited --trace "$file" "$@" >"$tmp/out" 2>"$tmp/err"
}

# verify FILE CHECK...: trace.py finds FILE right, and the folder of its parts is gone.
verify() {
	"$here/trace.py" "$@" 2>"$tmp/err" && [ ! -e "$1.parts" ]
}

in_real_time() {
	trace "$tmp/real" -- "$tests/test_qp_work" && verify "$tmp/real" "post send=10" "post receive=10" message=10 arriving=10 \
		"completion of a receive=10" "completion of a send=10" "post write=1" "polls in vain=1"
}

in_virtual_time() {
	trace "$tmp/virtual" --clock virtual --link latency=1us,bandwidth=1GB/s -- "$tests/test_qp_work" &&
		verify "$tmp/virtual" "post send=10" message=10 "polls in vain=1" program=1
}

repeats() {
	local run

	for run in 1 2; do
		trace "$tmp/$run" --clock virtual --clock-cpu 0 --link latency=1us,bandwidth=1GB/s -- "$tests/test_qp_work" ||
			return 1
	done
	verify "$tmp/1" "same=$tmp/2"
}

# A message that finds no receive is held.
held() {
	trace "$tmp/held" -- "$tests/test_rnr" && verify "$tmp/held" held=5
}

# Some 200 of 560 processes are killed: the trace has these, too.
killed() {
	trace "$tmp/killed" -- "$tests/test_death" && verify "$tmp/killed" process_name=500 message=1
}

# A message that no shared receive queue takes arrives at no process.
lost() {
	trace "$tmp/lost" -- "$tests/test_xrc_life" && verify "$tmp/lost" lost=0x777
}

# Messages of an unreliable connection that are dropped are in the trace like all others.
dropped() {
	trace "$tmp/dropped" -- "$tests/test_uc" && verify "$tmp/dropped" message=55
}

# refused TEXT FILE: exit status 125, and a sentence with TEXT; the command doesn't run.
refused() {
	local text=$1 status=0

	trace "$2" -- touch "$tmp/ran" || status=$?
	[ "$status" -eq 125 ] && grep -q -- "$text" "$tmp/err" && [ ! -e "$tmp/ran" ]
}

in_the_way() {
	mkdir "$tmp/other.parts"
	refused "other.parts is there already" "$tmp/other"
}

# On a file system that fills up the run goes on, and says that its trace ends early.
full() {
	trace "$tmp/small/file" -- "$tests/test_qp_work" &&
		grep -q "ends early, because its file can't grow" "$tmp/err"
}

check "a trace in real time" in_real_time
check "a trace in virtual time" in_virtual_time
check "the same run, the same trace" repeats
check "a message that waits for a receive" held
check "processes that are killed" killed
check "a message that goes nowhere" lost
check "a message that is dropped" dropped
check "no such folder" refused "can.t be made" "$tmp/none/file"
check "another run's folder in the way" in_the_way
if mkdir "$tmp/small" && mount -t tmpfs -o size=256k none "$tmp/small" 2>"$tmp/err"; then
	check "a file system that is full" full
else
	echo "ok a file system that is full # SKIP no right to mount one"
fi
exit $bad
