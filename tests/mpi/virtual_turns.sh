#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Turns that the monitor takes from threads in virtual time. Needs softhca in PATH, and the programs in $TEST_BUILD/bench/mpi.
set -u
few=10 # turns: those of threads that sleep for a while at start-up, or on a busy machine
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$(mktemp)
trap 'rm -f "$evidence"' EXIT

# job QUANTUM RANKS MPIRUN_ARGUMENT...: runs a job whose threads lose their turns after QUANTUM of CPU time. Stores the number of lost
# turns in $taken.
job() {
	taken=
	# shellcheck disable=SC2016 # the inner shell's
	timeout -k 5 60 softhca run --nodes 2 --memlock unlimited --clock virtual --clock-cpu 0 --clock-quantum "$1" --clock-tsc trap \
		--link latency=1.3us,bandwidth=1.5GB/s -- \
		bash -c '"$@" && softhca stat --json' bash mpirun --oversubscribe -n "$2" --mca mpi_yield_when_idle 0 --mca pml tupleq "${@:3}" \
		>"$evidence" 2>&1 || return
	taken=$(sed -n 's/.*"taken": \([0-9]*\).*/\1/p' "$evidence")
}

# Hardly a thread of a job computes for a quantum: a rank that finds the library's lock taken makes a call, instead of looking at the
# lock until its turn is taken away.
keeps() {
	job 500ms 2 --mca pml_tupleq_protocol rget "$TEST_BUILD/bench/mpi/bandwidth" --sizes 256K --least 3 --most 3 && [ "$taken" -lt $few ]
}

# With so short a quantum threads lose their turns at any point, also on their way to give them away, and go on nevertheless.
loses() {
	job 1us 16 "$TEST_BUILD/bench/mpi/sp/sp" --class S --steps 6 --replay 10,10,200,20,20,60,30,10,20 && [ "$taken" -gt 0 ]
}

check "virtual turns: hardly one is taken away" keeps
for i in 1 2 3; do
	check "virtual turns: a job with a short quantum ends, $i" loses
done
exit $bad
