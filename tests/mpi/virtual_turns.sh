#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# In virtual time hardly a thread of a job loses its turn by computing for a quantum: a rank that finds the library's lock taken makes
# a call, instead of looking at the lock until its turn is taken away. Needs softhca in PATH, and the programs in
# $TEST_BUILD/bench/mpi.
set -u
few=10 # turns: those of threads that sleep for a while at start-up, or on a busy machine
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

status=0
# shellcheck disable=SC2016 # the inner shell's
timeout -k 5 100 softhca run --nodes 2 --memlock unlimited --clock virtual --clock-cpu 0 --clock-tsc trap \
	--link latency=1.3us,bandwidth=1.5GB/s -- \
	bash -c 'mpirun --oversubscribe -n 2 --mca pml tupleq --mca pml_tupleq_protocol rget \
		"$TEST_BUILD/bench/mpi/bandwidth" --sizes 256K --least 3 --most 3 && softhca stat --json' >"$log" 2>&1 || status=$?
taken=$(sed -n 's/.*"taken": \([0-9]*\).*/\1/p' "$log")
if [ "$status" -eq 0 ] && [ "${taken:-$few}" -lt "$few" ]; then
	echo "ok virtual turns: $taken were taken away"
else
	echo "not ok virtual turns: status $status, ${taken:-no} turns were taken away"
	sed 's/^/# /' "$log"
	exit 1
fi
