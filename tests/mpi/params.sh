#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Values of MCA parameters: a wrong value ends MPI_Init with a sentence, and MPI_T shows a right one as it was given.
set -u
# shellcheck source=tests/mpi/job.sh
. "$(dirname "$0")/job.sh"

# job RANKS PARAMETER VALUE: runs the program variable with this value.
job() {
	mpi_job 60 "$1" --memlock unlimited --pkeys 0xffff,0x8001 -- --mca "$2" "$3" "$TEST_BUILD/tests/mpi/variable" "$2" "$3"
}

# refused SENTENCE PARAMETER VALUE...: the job is refused with each of the values.
refused() {
	local sentence=$1 parameter=$2 value
	shift 2
	[[ $parameter = *_tupleq_* ]] || parameter=pml_tupleq_$parameter
	for value in "$@"; do
		must_refuse "params: $parameter \"$value\"" -F "$sentence" job 2 "$parameter" "$value"
	done
}

# works PARAMETER VALUE...: the job works with each of the values, and MPI_T shows the value as it was given.
works() {
	local parameter=pml_tupleq_$1 value
	shift
	for value in "$@"; do
		if job 2 "$parameter" "$value" && grep -aq '^ok ' "$log"; then
			passed "params: $parameter $value"
		else
			failed "params: $parameter $value" "it should work"
		fi
	done
}

# shown PARAMETER VALUE: ompi_info shows this default.
shown() {
	ompi_info --parsable --param pml tupleq --level 9 >"$log" 2>&1
	if grep -qx "mca:pml:tupleq:param:pml_tupleq_$1:value:\"\?$2\"\?" "$log"; then
		passed "params: the default of $1"
	else
		failed "params: the default of $1" "ompi_info doesn't show $2"
	fi
}

# unit_params has all forms of libtupleq's values. Here one of each kind passes through Open MPI, which would read "many" as 0.
refused 'pml_tupleq_hold_lanes: hold_lanes = "abc": it takes a whole number' hold_lanes abc
refused 'it takes a whole number' promote_after many
refused 'it takes a whole number of bytes' copy_pool 18014398509481984K
refused 'pml_tupleq_protocol: protocol = "smoke": it takes one of tupleq|tupleq-copy|rput|rget' protocol smoke
refused 'it takes 1 or 0' service_thread ""
# The adapter refuses these.
refused 'has no GID of index 77' gid_index 77
refused 'without a global route messages have none' traffic_class 9
refused 'allow none of the RDMA devices' if_include mlx5_7
# The components' own.
refused 'pml_tupleq_priority = "-1": it takes a whole number from 0 to 100' pml_tupleq_priority -1
refused 'it takes a whole number from 0 to 100' pml_tupleq_priority "" 4294967301
refused 'coll_tupleq_limit = "4097": it takes a whole number from 0 to 4096' coll_tupleq_limit 4097
refused 'it takes a whole number from 0 to 100' coll_tupleq_priority high
refused 'it takes a whole number from 0 to 1073741824' coll_tupleq_memory 64M
refused 'it takes a whole number from 0 to 1073741824' coll_tupleq_allgather -1
refused 'it takes a whole number from 0 to 1' coll_tupleq_alltoallv 2
works hold_lanes 4
works eager_limit 8K
works pkey 0x8001
works protocol rget
works service_thread disabled
works gid_index 0
works mtu 256
works traffic_class 0
works if_include softhca0
shown hold_lanes 8
shown eager_limit 4K
shown gid_index -1
shown protocol tupleq
shown service_thread 1

# A name that no parameter has is said once on a host, for each component, and those that exist are not.
mpi_job 60 4 --memlock unlimited -- --mca pml_tupleq_eagr_limit 4K --mca pml_tupleq_stat 1 --mca coll_tupleq_limt 64 --mca btl_tupleq_any 1 \
	--mca pml_tupleq_eager_limit 4K --mca coll_tupleq_limit 64 "$TEST_BUILD/tests/mpi/retain"
for names in "pml: pml_tupleq_eagr_limit, pml_tupleq_stat" "pml: pml_tupleq_stat, pml_tupleq_eagr_limit" "coll: coll_tupleq_limt" "btl: btl_tupleq_any"; do
	grep -aF "${names#*: }: there is no such parameter" "$log" | grep -aF -e "--param ${names%%:*} tupleq"
done | grep -c . | {
	read -r lines
	if [ "$lines" -eq 3 ] && [ "$(grep -ac 'there is no such parameter' "$log")" -eq 3 ]; then
		passed "params: names that no parameter has"
	else
		failed "params: names that no parameter has" "$lines lines name them"
	fi
	exit $bad
} || bad=1

# Ranks with different limits of their collectives: the least counts.
for limits in 64:1024 0:1024 4096:0; do
	# shellcheck disable=SC2016 # for the ranks' shell
	if mpi_job 60 2 --memlock unlimited -- \
		sh -c 'limit=${0#*:}; [ "$OMPI_COMM_WORLD_RANK" = 1 ] || limit=${0%:*}; OMPI_MCA_coll_tupleq_limit=$limit exec "$@"' \
		"$limits" "$TEST_BUILD/tests/mpi/small" 1 200; then
		passed "params: collectives with the limits $limits"
	else
		failed "params: collectives with the limits $limits" "status $?"
	fi
done
exit $bad
