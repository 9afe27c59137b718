#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Adapters with too little of something: an MPI job refuses to run, with a sentence that says what is missing, up to the first
# value with which it works. It needs softhca in PATH, and the test programs in $TEST_BUILD/tests/mpi.
set -u
log=$(mktemp)
trap 'rm -f "$log"' EXIT
bad=0

# job OPTION...: a job on adapters with these options; of $program.
program=(p2p 5000)
job() {
	timeout -k 5 60 softhca run --nodes 2 --memlock unlimited "$@" -- \
		mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 \
		-n 2 --mca pml tupleq --mca pml_tupleq_promote_after 1 \
		"$TEST_BUILD/tests/mpi/${program[0]}" "${program[@]:1}" >"$log" 2>&1
}

failed() {
	echo "not ok $1 - $2"
	sed 's/^/# /' "$log"
	bad=1
}

# refused SENTENCE OPTION VALUE...: with each of the values.
refused() {
	local sentence=$1 option=$2 value status
	shift 2
	for value in "$@"; do
		status=0
		job "$option" "$value" || status=$?
		# A job that takes too long hangs; one that a signal ended has crashed.
		if [ $status -eq 0 ] || [ $status -ge 124 ]; then
			failed "limits: $option $value" "it is not refused: status $status"
		elif ! grep -aqE "$sentence" "$log"; then
			failed "limits: $option $value" "nothing says: $sentence"
		else
			echo "ok limits: $option $value is refused"
		fi
	done
}

# works OPTION VALUE...: with each of the values.
works() {
	local option=$1 value
	shift
	for value in "$@"; do
		if job "$option" "$value" && ! grep -aq '^not ok' "$log"; then
			echo "ok limits: $option $value"
		else
			failed "limits: $option $value" "it should work"
		fi
	done
}

# ends SENTENCE OPTION VALUE...: with each of the values it works, or is refused.
ends() {
	local sentence=$1 option=$2 value status
	shift 2
	for value in "$@"; do
		status=0
		job "$option" "$value" || status=$?
		if [ $status -ge 124 ] || grep -aq '^not ok' "$log"; then
			failed "limits: $option $value, ${program[*]}" "status $status"
		elif [ $status -ne 0 ] && ! grep -aqE "$sentence" "$log"; then
			failed "limits: $option $value, ${program[*]}" "nothing says: $sentence"
		else
			echo "ok limits: $option $value, ${program[*]}"
		fi
	done
}

memory="can't be (made|registered)|can be registered.* ulimit -l"

refused 'no RDMA device with XRC .* was found among softhca0: use ' --xrc no
refused 'softhca0 has XRC, but not ibv_open_qp\(\) .*: use an adapter of ' --open-qp no
refused 'offers 1 shared receive queues .* too few' --max-srq 1
works --max-srq 2
refused 'shared receive queues of [0-9]+ entries: too few' --max-srq-wr 1 15
works --max-srq-wr 16
refused 'the adapter gives no more queue pairs .* Fewer' --max-qp 1 2
works --max-qp 3
refused 'queue pairs of [0-9]+ entries at most: too few' --max-qp-wr 1 15
works --max-qp-wr 16
refused "completion queue of [0-9]+ entries can't be made: .* fewer processes" --max-cq 1
works --max-cq 2
refused 'completion queues have [0-9]+ entries at most: too few' --max-cqe 1 63
works --max-cqe 64
refused "$memory" --max-mr 1 3 5
works --max-mr 6
refused "$memory" --memlock 4K 256K
works --memlock 2M
refused "$memory" --max-mr-size 4K 128K
works --max-mr-size 1M
works --max-sge 1
works --max-srq-sge 1
works --max-msg-sz 4K

# warns TIMES RANKS OPTION VALUE PROGRAM ARGUMENT...: it works, and so many processes of the job say that it is slow.
warns() {
	local times=$1 ranks=$2 option=$3 value=$4 said
	shift 4
	timeout -k 5 100 softhca run --nodes 2 "$option" "$value" -- \
		mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 \
		-n "$ranks" --mca pml tupleq "$TEST_BUILD/tests/mpi/$1" "${@:2}" >"$log" 2>&1
	said=$(grep -ac 'messages are copied in pieces, which is slow.*ulimit -l' "$log")
	if ! grep -aq '^ok ' "$log" || grep -aq '^not ok' "$log"; then
		failed "limits: $option $value, $*" "it should work"
	elif [ "$said" -ne "$times" ]; then
		failed "limits: $option $value, $*" "the warning is there $said times, not $times"
	else
		echo "ok limits: $option $value, $*: $times warnings"
	fi
}

warns 1 4 --memlock 8M p2p 4194304
warns 1 2 --memlock 6M p2p 4194304
warns 0 2 --memlock 8M p2p 8192
warns 0 2 --memlock unlimited p2p 4194304
# The cache gives up what is idle.
warns 0 2 --memlock 32M p2p 4194304

# From too little to enough each job is refused or works: messages go in a slower way, but none waits for ever.
for name in 'scarce' 'flood 1 500'; do
	read -ra program <<<"$name"
	ends "$memory" --max-mr 5 6 7 8 10 12 16 24 32
	ends "$memory" --memlock 1M 1500K 2M 2500K 3M 4M 6M 8M
done
# A message that could be sent to a queue without a sink behind it, as it has just the right length, can't be taken off its lane.
program=(scarce exact)
SOFTHCA_MAX_SRQ_SGE=1 refused 'no memory can be registered for a message that it holds' --max-mr 14
exit $bad
