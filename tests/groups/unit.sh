# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group unit: parts of the libraries, without a fabric. Sourced by run.sh.

takes unit 5

# run_units PREFIX FOLDERS [ENVIRONMENT...]: runs the units in folders of tests, which are words of one argument.
run_units() {
	local prefix=$1 folders=$2 unit
	shift 2

	# shellcheck disable=SC2086 # a list of words
	for unit in $(unit_programs $folders); do
		wanted "${unit##*/}" || continue
		run "$prefix${unit##*/}" 300 env "$@" "$build/$unit"
	done
}

group_unit() {
	plain_build
	run_units "" "softhca mpi portals libfabric" # those of transport are in its group
}
