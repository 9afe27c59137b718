#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Messages that found no hold lane are sent while both ranks compute, by the service threads, although the ranks were in the library a
# moment ago: of ten messages, which take 340 us together, two find none of the eight hold lanes free. In virtual time, where
# computing takes as long as the program asks for. Needs softhca in PATH, and the programs in $TEST_BUILD/bench/mpi.
set -u
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$(mktemp)
trap 'rm -f "$evidence"' EXIT

# Batches without computing between come first, so the service threads have found their ranks in the library all the time.
bypasses() {
	timeout -k 5 100 softhca run --nodes 2 --memlock unlimited --clock virtual --clock-cpu 0 --clock-tsc trap \
		--link latency=1.3us,bandwidth=1.5GB/s -- mpirun --oversubscribe -n 2 --mca mpi_yield_when_idle 0 --mca pml tupleq \
		--mca pml_tupleq_hold_lanes 8 "$TEST_BUILD/bench/mpi/bypass" --sleep --work 0,100,200,300,400,600 --tests 0 >"$evidence" 2>&1 &&
		python3 - "$evidence" <<-'END'
			import json, sys
			waits = {one["asked_us"]: one["wait_us"] for one in map(json.loads, open(sys.argv[1]))}
			sys.exit(not (waits[0] > 300 and waits[400] < 5 and waits[600] < 5))
		END
}

check "messages without a hold lane go while both ranks compute" bypasses
exit $bad
