# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group portals: libportals itself, then Open MPI's own components on it. Sourced by run.sh.

takes portals 25

group_portals() {
	plain_build
	wanted sim_lists && run sim_lists 300 "$build/tests/portals/sim_lists" --runs 50000
	! wanted openmpi.sh || run openmpi.sh 900 env TEST_BUILD="$build" "$top/tests/portals/openmpi.sh"
	run_list portals suite.list ""
}
