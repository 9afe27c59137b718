#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# For each kind of memory that crowded registers: finds the least limit of locked memory with which the kind works after no messages, and
# checks that it also works 64 KiB above that after messages that would fill the limit several times. Needs softhca in PATH, and the
# programs in $TEST_BUILD/tests/mpi.
set -u
# shellcheck source=tests/mpi/job.sh
. "$(dirname "$0")/job.sh"

# The limits between which the least one is sought, and how exactly (KiB).
low=512 high=4096 step=32
more=64
buffers=140

# fits KIB NODES PROTOCOL BUFFERS KIND: true if the kind works with that limit.
fits() {
	mpi_job 40 2 --nodes "$2" --memlock "$1K" -- --mca pml_tupleq_protocol "$3" "$TEST_BUILD/tests/mpi/crowded" "$4" "$5" &&
		grep -q '^ok ' "$log" && ! grep -q '^not ok' "$log"
}

# least NODES PROTOCOL KIND: prints the least limit.
least() {
	local below=$low above=$high middle

	while [ $((above - below)) -gt "$step" ]; do
		middle=$(((above + below) / 2))
		if fits "$middle" "$1" "$2" 0 "$3"; then above=$middle; else below=$middle; fi
	done
	echo "$above"
}

for job in "1 tupleq" "2 tupleq" "2 rget" "2 rput"; do
	read -r nodes protocol <<<"$job"
	for kind in accumulate create allocate attach communicator; do
		limit=$(least "$nodes" "$protocol" "$kind")
		name="$kind after $buffers buffers at $((limit + more)) KiB, $nodes nodes, $protocol"
		if [ "$limit" -lt "$high" ] && fits $((limit + more)) "$nodes" "$protocol" "$buffers" "$kind"; then
			passed "$name"
		else
			failed "$name" "it needs $limit KiB after no messages"
		fi
	done
done
exit "$bad"
