#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# failures.sh - a rank of a job is killed, in each phase and at random, or its connections break: the job ends with a status and
# a message, and leaves no files. TEST_BUILD is the build tree; softhca is in PATH.
build=${TEST_BUILD:?set it to the build tree}
pml=(--mca pml tupleq)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# A namespace shows a job's System V segments alone, where we may make one.
namespace=(unshare --ipc)
"${namespace[@]}" true 2>/dev/null || namespace=()

# alone COMMAND...: runs a command, and lists the segments that it leaves.
alone() {
	# shellcheck disable=SC2016 # for that shell
	if [ ${#namespace[@]} -eq 0 ]; then
		"$@"
	else
		SEGMENTS=$tmp/segments "${namespace[@]}" sh -c '"$@"; s=$?; sed 1d /proc/sysvipc/shm >"$SEGMENTS"; exit $s' sh "$@"
	fi
}

# job SOFTHCA-OPTIONS RANKS PROGRAM...: runs a job. Its output is in $tmp/out, its status in $status.
job() {
	local softhca
	read -ra softhca <<<"$1"
	mkdir -p "$tmp/session"
	# shellcheck disable=SC2016 # for the job's shell
	TMPDIR=$tmp/session alone timeout -k 5 60 softhca run --nodes 2 --memlock unlimited "${softhca[@]}" -- \
		sh -c 'echo "fabric $SOFTHCA_FABRIC"; exec "$@"' sh \
		mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 \
		-n "$2" "${pml[@]}" "${@:3}" >"$tmp/out" 2>&1
	status=$?
}

left_behind() {
	local fabric
	fabric=$(sed -n 's/^fabric //p' "$tmp/out")
	[ -e "$fabric" ] && echo "the fabric $fabric is left"
	[ ! -s "$tmp/segments" ] || echo "a System V segment is left"
	find "$tmp/session" -name 'tupleq*' -printf '%p is left\n' -quit
}

# reported_twice: "RANK of PEER" for each rank that reported a failure of a peer more than once. A sentence is about the first rank
# that it names.
reported_twice() {
	sed -En 's/.*\] tupleq, (rank [0-9]+) on [^:]*: ([A-Z][a-z ]* to )?(rank [0-9]+) on .*/\1 of \3/p' "$tmp/out" | sort | uniq -d
}

# verdict NAME PATTERN: the job ended by itself with an error, and its output matches PATTERN. Each rank reported each failed rank,
# itself included, once.
verdict() {
	local why=''

	[ "$status" -ne 0 ] || why="status 0"
	judge "$1" "$2" "$why"
}

# judge NAME PATTERN WHY: as verdict, but for the status, which mpirun --enable-recovery makes 0. WHY is a fault that was found
# before, or empty.
judge() {
	local why=$3 repeated

	[ "$status" -ne 124 ] || why="no end in time"
	grep -Eq "$2" "$tmp/out" || why=${why:-"it doesn't say $2"}
	! grep -q 'known error not in list' "$tmp/out" || why=${why:-"an error is of no class"}
	repeated=$(reported_twice)
	[ -z "$repeated" ] || why=${why:-"reported more than once: $repeated"}
	why=${why:-$(left_behind)}
	if [ -z "$why" ]; then
		echo "ok $1"
	else
		echo "not ok $1 - $why"
		sed 's/^/# /' "$tmp/out"
	fi
	rm -rf "$tmp/session"
}

# The sentence of mpirun or of another rank: if a rank sees the death first and aborts the job, mpirun may not report it.
failed='connection to rank [0-3] on host .* failed: '
# Open MPI 5 breaks its line before the signal.
death="exited on( signal 9|$)|has been aborted|tupleq, rank [0-3] on host .* ($failed|has died)"
for phase in start init eager rendezvous held wildcard finalize; do
	job "" 4 "$build/tests/mpi/victim" "$phase"
	verdict "killed: $phase" "$death"
done
# Within a node messages go through shared memory. If all ranks are killed, none is there to tidy up.
pml=(--mca pml tupleq --mca pml_tupleq_intranode shm)
for phase in start init eager rendezvous held wildcard finalize; do
	job "--nodes 1" 4 "$build/tests/mpi/victim" "$phase"
	verdict "killed within a node: $phase" "$death"
done
for phase in init eager rendezvous held; do
	job "--nodes 1" 4 "$build/tests/mpi/victim" "$phase" all
	verdict "all are killed within a node: $phase" "$death"
done
pml=(--mca pml tupleq)
# With --enable-recovery mpirun leaves it to the other rank to see the death and to end the job. (mpirun sometimes loses MPI's
# message about that error, so errors.c checks it.)
for phase in init eager rendezvous held; do
	job "" 2 --enable-recovery --mca pml_tupleq_keepalive 100 "$build/tests/mpi/victim" "$phase"
	judge "death is named: $phase" "tupleq, rank 0 on host .*: rank 1 on host .* has died: " ""
done
# shellcheck disable=SC2016 # for the ranks' shell
job "--pkeys 0xffff,0x8001" 2 sh -c 'OMPI_MCA_pml_tupleq_pkey=$((OMPI_COMM_WORLD_RANK ? 1 : 0x7fff)) exec "$@"' sh \
	"$build/tests/mpi/order" 1
verdict "ranks in two partitions" "rank [01] on host .* can't be reached: .* in another partition"
# shellcheck disable=SC2016
job "--link-layer ethernet" 2 sh -c 'OMPI_MCA_pml_tupleq_gid_index=$((OMPI_COMM_WORLD_RANK ? 1 : 3)) exec "$@"' sh \
	"$build/tests/mpi/order" 1
verdict "ranks with an IPv4 and an IPv6 address" "rank [01] on host .* can't be reached: .* another family"
# shellcheck disable=SC2016
job "" 2 sh -c 'OMPI_MCA_pml_tupleq_eager_max=$((OMPI_COMM_WORLD_RANK ? 32768 : 16384)) exec "$@"' sh "$build/tests/mpi/order" 1
verdict "ranks with different eager limits" "to rank 0 on host .* was given up: its control buffers are smaller than ours"
for seed in 1 2 3; do
	job "--fault-kill 0.001 --fault-seed $seed" 4 "$build/tests/mpi/order" "$seed"
	verdict "killed at random, seed $seed" "$death"
done
for seed in 1 2 3; do
	job "--fault-qp 0.003 --fault-seed $seed" 4 "$build/tests/mpi/order" "$seed"
	verdict "a queue pair fails, seed $seed" "tupleq, rank [0-3] on host .* $failed"
done
# Windows: osc/rdma ignores errors, so btl/tupleq ends the job.
widow=$build/tests/mpi/widow
for operation in put get accumulate fetch compare "put noticed" "fetch noticed"; do
	read -ra words <<<"$operation"
	job "" 3 --enable-recovery --mca pml_tupleq_keepalive 100 "$widow" "${words[@]}"
	judge "window's target is killed: $operation" "One-sided communication with rank 1 on host .* has failed" ""
done
job "--memlock 6M" 2 "$build/tests/mpi/window_memory" 16000000
judge "a window that can't be registered" "MPI_Win_create failed" ""
job "--memlock 6M" 2 "$build/tests/mpi/window_memory" 2500000
verdict "a put that can't be registered" "btl tupleq, rank 0 on host .*: 2500000 bytes at .* can't be registered"
pml=(--mca pml ob1 --mca btl "tupleq,self")
for operation in put fetch receive; do
	job "" 3 --enable-recovery --mca btl_tupleq_keepalive 100 "$widow" "$operation"
	judge "ob1 over btl/tupleq: $operation" "The communication with rank 1 on host .* has failed" ""
done
# Open MPI 5 has fault tolerance, with which the other ranks go on. Its MPI_Finalize would now and then wait forever for the runtime.
ft=(--with-ft ulfm --mca async_mpi_finalize 1)

# goes_on PML PROGRAM LEFT: ranks are killed, and the LEFT others go on and finalize MPI.
goes_on() {
	local why=''

	job "" 4 "$build/tests/mpi/$2"
	[ "$(grep -c '^ok rank . has left MPI$' "$tmp/out")" -eq "$3" ] || why="not all others end by MPI_Finalize"
	[ "$(grep -c '^ok rank . goes on$' "$tmp/out")" -eq "$3" ] || why="not all others go on"
	judge "fault tolerance, $1: $2" "rank [1-3] on host .* (has died|has failed)" "$why"
}

if [[ $(ompi_info --version) == *" v5."* ]]; then
	pml=("${ft[@]}" --mca pml ob1 --mca btl "tupleq,self")
	goes_on "ob1 over btl/tupleq" shrink 3
	for protocol in tupleq tupleq-copy rput rget; do
		pml=("${ft[@]}" --mca pml tupleq --mca pml_tupleq_protocol "$protocol" --mca btl "tupleq,sm,self")
		goes_on "$protocol" shrink 3
		goes_on "$protocol" revoke 2
	done
	pml=("${ft[@]}" --mca pml tupleq --mca pml_tupleq_promote_after 0 --mca btl "tupleq,sm,self")
	goes_on "with queues from the first message on" revoke 2
fi
