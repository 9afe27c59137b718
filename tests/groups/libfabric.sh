# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group libfabric: the provider by itself, then programs of others on it. Sourced by run.sh.

takes libfabric 60
needs libfabric libfabric-bin "${mpi_packages[@]}"

# pingpong NODES ARGUMENT...: runs fi_pingpong's server and client, which find each other by TCP, on the first and the last virtual node.
pingpong() {
	local nodes=$1 label
	shift
	label="fi_pingpong $*, $nodes nodes"
	wanted "$label" || return 0
	pass_or_fail "$label" 120 env SERVER_PORT=-B CLIENT_PORT=-P softhca run --nodes "$nodes" -- \
		"$top/tests/clients/pair" $((nodes - 1)) fi_pingpong -p tupleq -e rdm "$@"
}

group_libfabric() {
	local has_mtl=

	plain_build
	if [ ! -e "$build/src/libfabric/libtupleq-fi.la" ]; then
		skip "all of libfabric" "the build has no provider, because it has found no libfabric-dev"
		return 0
	fi
	[[ $(ompi_info --parsable) != *mca:mtl:ofi:* ]] || has_mtl=1
	# The longest one first, so that others run beside it.
	[ -z "$has_mtl" ] || ! wanted steps.py ||
		run "steps.py --libfabric" 300 env TEST_BUILD="$build" "$top/tests/mpi/steps.py" --libfabric
	run_list libfabric suite.list ""
	wanted info.sh && run info.sh 60 "$top/tests/libfabric/info.sh"
	wanted share.sh && run share.sh 60 env TEST_BUILD="$build" "$top/tests/libfabric/share.sh"
	pingpong 1 -c -I 20
	pingpong 2 -c -I 20
	pingpong 2 -c -I 5 -S all
	if [ -n "$has_mtl" ]; then
		PML=ofi run_mpi libfabric/mpi.list ""
	else
		skip "MPI programs on mtl/ofi" "this Open MPI has no mtl/ofi"
	fi
	return 0
}
