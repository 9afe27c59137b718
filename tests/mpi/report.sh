#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The report of pml_tupleq_stats: it appears once if it is asked for, and says what the job did.
set -u
# shellcheck source=tests/mpi/job.sh
. "$(dirname "$0")/job.sh"

# job RANKS OPTION...: sends 100 messages of 20000 bytes with tag 77, and as many empty ones, as report.c does with $how.
how=
job() {
	local ranks=$1
	shift
	mpi_job 60 "$ranks" --memlock unlimited -- "$@" "$TEST_BUILD/tests/mpi/report" 100 20000 77 $how
}

# shows NAME STATUS: a test, which passes if the status is 0.
shows() {
	if [ "$2" -eq 0 ]; then
		passed "report: $1"
	else
		failed "report: $1" "the report doesn't show it"
	fi
}

# counter NAME: the counter in the report; 0 if the report leaves it out.
counter() {
	awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' "$log"
}

# software UNIT: the messages (UNIT "") or bytes (UNIT "_bytes") that software received, by the counters.
software() {
	echo $(($(counter "recv_eager$1") + $(counter "recv_copied$1") + $(counter "recv_rget$1") + $(counter "recv_rput$1") + $(counter "recv_pipelined$1")))
}

percent() { # PART REST
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a ? 100 * a / (a + b) : 0 }'
}

# The first line agrees with the counters.
summary() {
	local direct bytes
	direct=$(counter recv_direct) bytes=$(counter recv_direct_bytes)
	[ "$(grep -c '^TupleQ: ' "$log")" -eq 1 ] && [ "$(software "")" -gt 0 ] &&
		grep -qF "The HCA matched $direct of $((direct + $(software ""))) messages ($(percent "$direct" "$(software "")") %, and $(percent "$bytes" "$(software _bytes)") % of the bytes), software matched $(software ""); $(counter promotions) promotions, $(counter recalls) recalls." "$log"
}

# On each path, as many messages and bytes were received as were sent.
balanced() {
	local path
	for path in direct direct_bytes eager; do
		[ "$(counter "sent_$path")" -eq "$(counter "recv_$path")" ] || return 1
	done
	[ "$(counter sent_rts)" -eq $(($(counter recv_copied) + $(counter recv_rget) + $(counter recv_rput) + $(counter recv_pipelined) + $(counter cts_direct))) ]
}

# tuple RECEIVER SOURCE TAG: the columns "by the HCA" and "by software" of that tuple of MPI_COMM_WORLD.
tuple() {
	awk -v want="0 $1 $2 $3" '$1 " " $2 " " $3 " " $4 == want { print $5, $6 }' "$log"
}

job 2 --mca pml_tupleq_stats 1 --mca pml_tupleq_promote_after 0 && grep -q '^TupleQ: 2 processes, rank 0 on softhca0 port 1' "$log"
shows "two processes" $?
summary
shows "its first line agrees with its counters" $?
balanced
shows "what was sent is what was received" $?
read -r direct by_software < <(tuple 1 0 77)
[ $((direct + by_software)) -eq 100 ] && [ "$direct" -ge 50 ] && [ "$(counter recv_direct_bytes)" -ge $((20000 * direct)) ]
shows "a tuple that the HCA matches" $?
read -r direct by_software < <(tuple 0 1 78)
[ $((direct + by_software)) -eq 100 ]
shows "the other tuple" $?

job 2 --mca pml_tupleq_stats 1 --mca pml_tupleq_protocol rget && summary && balanced && [ "$(counter recv_direct)" -eq 0 ] && [ "$(tuple 1 0 77)" = "0 100" ] &&
	[ "$(counter recv_rget_bytes)" -ge 2000000 ]
shows "rget" $?

# advice REASON: the report gives this reason why messages went to no queue.
advice() {
	grep -qE "^[0-9.]+ % of the messages $1" "$log"
}

# within_node OPTION...: four ranks of one node.
within_node() {
	mpi_job 60 4 --nodes 1 --memlock unlimited -- --mca pml_tupleq_stats 1 "$@" \
		"$TEST_BUILD/tests/mpi/report" 1000 20000 77
}

within_node && grep -qF "$(counter sent_ring) eager and control messages ($(counter sent_ring_bytes) bytes) went through shared memory within nodes." "$log" &&
	! grep -qF 'use the adapter' "$log"
shows "within nodes" $?
advice 'went to no queue because shared memory is faster within a node' && [ "$(counter not_asked_local)" -ge 900 ] && ! advice 'came to tuples that had sent too few'
shows "no queue within nodes" $?
within_node --mca pml_tupleq_rings 1 && grep -qF "Within nodes $(counter rings_missed) pairs of processes use the adapter" "$log" && [ "$(counter rings_missed)" -gt 0 ]
shows "too few rings within nodes" $?

how=early job 2 --mca pml_tupleq_stats 1 && advice 'came to tuples without a queue because messages arrive before their receives' &&
	[ "$(counter software_early)" -ge 50 ]
shows "messages that come before their receives" $?
how=any job 2 --mca pml_tupleq_stats 1 && advice 'came to tuples without a queue because of MPI_ANY_SOURCE' &&
	[ "$(counter software_wildcard)" -ge 50 ]
shows "receives that name no source" $?
job 2 --mca pml_tupleq_stats 1 --mca pml_tupleq_promote_after 1000 && advice 'came to tuples that had sent too few messages to ask for a queue'
shows "tuples that are seldom used" $?
job 2 --mca pml_tupleq_stats 1 --mca pml_tupleq_protocol rget && ! grep -q ' % of the messages came to tuples' "$log"
shows "no advice on queues where there are none" $?

job 1 --mca pml_tupleq_stats 1 && [ "$(grep -c '^TupleQ: 1 process, rank 0' "$log")" -eq 1 ]
shows "one process" $?

job 2 && ! grep -q '^TupleQ: ' "$log"
shows "nothing without pml_tupleq_stats" $?

# Sessions end on each process for itself.
if [[ $(ompi_info --version) == *" v5."* ]]; then
	mpi_job 60 2 --memlock unlimited -- --mca pml_tupleq_stats 1 "$TEST_BUILD/tests/mpi/sessions" alone &&
		[ "$(grep -c "^TupleQ: the job's first process alone, as it used sessions" "$log")" -eq 1 ] && [ "$(counter recv_eager)" -gt 0 ]
	shows "sessions without MPI_Init" $?
fi

# A communicator's state has its tuples, although more than it shows of another communicator are busier.
mpi_job 60 2 --memlock unlimited -- "$TEST_BUILD/tests/mpi/dump" 7 100 &&
	[ "$(grep -c ' source 0 tag [0-9]*: ' "$log")" -eq 1 ] && grep -q ' source 0 tag 7: ' "$log"
shows "the tuples of one communicator" $?
exit $bad
