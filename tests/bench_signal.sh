#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench_signal.sh - a benchmark that a signal ends leaves no rank behind. Needs build/env.sh and the programs of `make bench`.
set -euo pipefail
cd "$(dirname "$0")/.."
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
bad=0

# processes SESSION: the numbers and command lines of the session's processes, without zombies. (Debian's smallest systems have no ps.)
processes() {
	local process line fields

	for process in /proc/[0-9]*; do
		{ read -r line <"$process/stat"; } 2>/dev/null || continue
		# Behind the name, which may have spaces, are the state, the parent, the group and the session.
		read -ra fields <<<"${line##*) }"
		[ "${fields[3]}" = "$1" ] && [ "${fields[0]}" != Z ] || continue
		echo "${process#/proc/} $(tr '\0\n' '  ' 2>/dev/null <"$process/cmdline" || true)"
	done
}

# wait_until SECONDS COMMAND...
wait_until() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.2
	done
}

has_ranks() { [[ $(processes "$session") == *bench/mpi/bandwidth* ]]; }
has_begun() { has_ranks || ! kill -0 "$session" 2>/dev/null; }
has_none() { [ -z "$(processes "$session")" ]; }

# ends SIGNAL OPTION...: starts a benchmark with these options, and sends it the signal when its ranks run.
ends() {
	local signal=$1
	shift
	# Background commands of a shell ignore SIGINT, and so would a program that setsid(1) starts.
	BENCH_RESULTS=$results python3 - bench/mpi/run.sh rate "$@" -- --sizes 1K --ms 100000 --most 1000000 >"$results/log" 2>&1 <<-'END' &
		import os, signal, sys
		os.setsid()
		signal.signal(signal.SIGINT, signal.SIG_DFL)
		os.execv(sys.argv[1], sys.argv[1:])
	END
	session=$!
	if ! wait_until 60 has_begun || ! has_ranks; then
		echo "the benchmark starts no ranks:" && cat "$results/log"
		exit 1
	fi
	kill -s "$signal" "$session"
	if ! wait_until 15 has_none; then
		echo "$signal leaves behind:" && processes "$session"
		processes "$session" | cut -d ' ' -f 1 | xargs -r kill -9 2>/dev/null || true
		bad=1
	fi
	wait "$session" || true
}

echo "localhost slots=2" >"$results/hosts"
# The benchmark takes much longer than the test waits.
# Without "softhca run", which ends all processes that it has started.
for signal in INT TERM HUP; do
	ends "$signal" --columns ob1-vader --hostfile "$results/hosts"
done
ends TERM --columns tupleq
exit "$bad"
