#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Adapters with too little of something: an MPI job refuses to run, with a sentence that says what is missing, up to the first
# value with which it works.
set -u
# shellcheck source=tests/mpi/job.sh
. "$(dirname "$0")/job.sh"

# job OPTION VALUE: runs $program on adapters with this option.
program=(p2p 5000)
job() {
	mpi_job 60 2 --memlock unlimited "$@" -- --mca pml_tupleq_promote_after 0 "$TEST_BUILD/tests/mpi/${program[0]}" "${program[@]:1}"
}

# refused SENTENCE OPTION VALUE...: the job is refused with each of the values.
refused() {
	local sentence=$1 option=$2 value
	shift 2
	for value in "$@"; do
		must_refuse "limits: $option $value" -E "$sentence" job "$option" "$value"
	done
}

# works OPTION VALUE...: the job works with each of the values.
works() {
	local option=$1 value
	shift
	for value in "$@"; do
		if job "$option" "$value" && ! grep -aq '^not ok' "$log"; then
			passed "limits: $option $value"
		else
			failed "limits: $option $value" "it should work"
		fi
	done
}

# ends SENTENCE OPTION VALUE...: the job works or is refused with each of the values.
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
			passed "limits: $option $value, ${program[*]}"
		fi
	done
}

memory="can't be (made|registered)|can be registered.* ulimit -l"

refused 'No RDMA device with XRC .* was found among softhca0. Use ' --xrc no
refused 'softhca0 has XRC, but not ibv_open_qp\(\) .*\. Use an adapter of ' --open-qp no
refused 'offers 1 shared receive queues .* too few' --max-srq 1
works --max-srq 2
refused 'shared receive queues of [0-9]+ entries: too few' --max-srq-wr 1 15
works --max-srq-wr 16
# The queue pair that is missing is the own one or the peer's, as the processes happen to be quick.
refused '(the|its) adapter gives no more queue pairs.* Fewer' --max-qp 1 2
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

# warns TIMES RANKS OPTION VALUE PROGRAM ARGUMENT...: the job works, and TIMES of its processes warn that messages are slow.
warns() {
	local times=$1 ranks=$2 option=$3 value=$4 said
	shift 4
	mpi_job 100 "$ranks" "$option" "$value" -- "$TEST_BUILD/tests/mpi/$1" "${@:2}"
	said=$(grep -ac 'Messages are copied in pieces, which is slow.*ulimit -l' "$log")
	if ! grep -aq '^ok ' "$log" || grep -aq '^not ok' "$log"; then
		failed "limits: $option $value, $*" "it should work"
	elif [ "$said" -ne "$times" ]; then
		failed "limits: $option $value, $*" "$said processes warn, not $times"
	else
		passed "limits: $option $value, $*: $times warnings"
	fi
}

warns 1 4 --memlock 8M p2p 4194304
warns 1 2 --memlock 6M p2p 4194304
warns 0 2 --memlock 8M p2p 8192
warns 0 2 --memlock unlimited p2p 4194304
# The cache gives up idle registrations.
warns 0 2 --memlock 32M p2p 4194304

# From too little to enough: each job is refused, or works in a slower way, but no message waits for ever.
for name in 'scarce' 'flood 1 500'; do
	read -ra program <<<"$name"
	ends "$memory" --max-mr 5 6 7 8 10 12 16 24 32
	ends "$memory" --memlock 1M 1500K 2M 2500K 3M 4M 6M 8M
done
# A message of exactly the right length could go to a queue without a sink, so it can't be taken off its lane.
program=(scarce exact)
SOFTHCA_MAX_SRQ_SGE=1 refused 'no memory can be registered for a message that it holds' --max-mr 14
exit $bad
