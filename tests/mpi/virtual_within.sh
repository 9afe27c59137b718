#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Messages within a node in virtual time: half a round trip through the shared memory of pml/tupleq, btl/vader and UCX, with computing
# that costs nothing and with CPU time. Nothing but the ranks' own code tells softhca of these messages. Needs softhca in PATH, and the
# programs in $TEST_BUILD/bench/mpi.
set -u
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

# latency CPU LEAST MOST OPTION of mpirun...: one test. The figure is from LEAST to MOST us.
latency() {
	local cpu=$1 least=$2 most=$3 name us=''
	shift 3
	name="half a round trip within a node, $*, CPU time x $cpu"
	timeout -k 5 100 softhca run --clock virtual --clock-cpu "$cpu" --clock-report yes --memlock unlimited -- \
		mpirun --oversubscribe -n 2 --mca mpi_yield_when_idle 1 "$@" "$TEST_BUILD/bench/mpi/latency" --warm-up 20 --most 50 \
		>"$log" 2>&1 </dev/null && us=$(sed -n 's/.*"half_us":\([0-9.]*\).*/\1/p' "$log")
	if grep -q "doesn't tell of writes" "$log"; then
		echo "ok $name # SKIP the kernel doesn't tell of writes to shared memory"
	elif awk -v us="$us" -v least="$least" -v most="$most" 'BEGIN { exit !(us >= least && us <= most) }'; then
		echo "ok $name: $us us"
	else
		echo "not ok $name: ${us:-no} us, $least to $most expected"
		sed 's/^/# /' "$log"
		failed=1
	fi
}

# A poll takes 15 ns, and a yield 500 ns. CPU time is that of a machine that may be busy.
for figures in "0 0.01 1" "1 0.3 20"; do
	read -ra range <<<"$figures"
	latency "${range[@]}" --mca pml tupleq --mca pml_tupleq_intranode auto
	latency "${range[@]}" --mca pml tupleq --mca pml_tupleq_intranode shm
	latency "${range[@]}" --mca pml ob1 --mca btl vader,self
	latency "${range[@]}" --mca pml ucx --mca opal_common_ucx_devices any --mca opal_common_ucx_tls any -x UCX_TLS=sm,self
done
exit "$failed"
