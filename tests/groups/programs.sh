# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group programs: MPI programs of other projects, on pml/tupleq. Sourced by run.sh.

takes programs 35
needs programs "${program_packages[@]}"

group_programs() {
	plain_build
	run_mpi programs/suite.list ""
}
