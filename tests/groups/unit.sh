# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group unit: parts of the libraries, without a fabric. Sourced by run.sh.

takes unit 5

# run_units PREFIX [ENVIRONMENT...]: runs the tests that need no fabric.
run_units() {
	local prefix=$1 src p

	shift
	for src in "$top"/tests/softhca/unit_*.c "$top"/tests/mpi/unit_*.c "$top"/tests/portals/unit_*.c; do
		p=$(basename "$src" .c)
		wanted "$p" || continue
		run "$prefix$p" 300 env "$@" "$build/tests/$(basename "$(dirname "$src")")/$p"
	done
}

group_unit() {
	plain_build
	run_units ""
}
