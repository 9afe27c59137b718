# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group transport: the protocol on a model of the network, then libtupleq itself. Sourced by run.sh.

takes transport 125 220

# run_sims PREFIX RUNS LIMIT ANY [ENVIRONMENT...]: runs the protocol on a model of the network, and the units. With ANY 1, a case with
# more schedules than LIMIT is no failure.
run_sims() {
	local prefix=$1 runs=$2 limit=$3 any=$4
	shift 4
	wanted sim_random && run "${prefix}sim_random" 600 env "$@" "$build/tests/transport/sim_random" --runs "$runs"
	wanted "sim_random --break 1" &&
		run "${prefix}sim_random --break 1" 600 env "$@" "$build/tests/transport/sim_random" --runs "$((runs / 4))" --break 1
	wanted sim_exhaustive &&
		run "${prefix}sim_exhaustive" 600 env "$@" "$build/tests/transport/sim_exhaustive" --limit "$limit" --any "$any"
	wanted "sim_exhaustive --rings 1" &&
		run "${prefix}sim_exhaustive --rings 1" 600 env "$@" "$build/tests/transport/sim_exhaustive" --limit "$limit" --any "$any" --rings 1
	run_units "$prefix" transport "$@"
}

group_transport() {
	local limit=20000 any=1 # with which the mutants are found

	plain_build
	! wanted sim_exhaustive || ! in_full "all schedules of most small cases: sim_exhaustive with 100000 of each" || limit=100000 any=0
	run_sims "" 50000 $limit $any
	wanted sim_options && run sim_options 60 "$top/tests/transport/sim_options.sh" "$build/tests/transport/sim_exhaustive"
	wanted mutants && run mutants 900 "$top/tests/transport/mutants.sh"
	wanted mutants_net && in_full "the mutants of net/ and ep/: mutants_net" &&
		run mutants_net 900 env TEST_BUILD="$build" "$top/tests/transport/mutants_net.sh"
	run_list transport "[ps]*.list" "" # not virtual.list
	run_list transport within.list "within: " TEST_INTRANODE=auto
	run_list transport copies.list "copies: " TEST_INTRANODE=shm
}
