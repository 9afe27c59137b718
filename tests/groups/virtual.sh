# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group virtual: programs of the group softhca, and of others, in virtual time. Sourced by run.sh.

takes virtual 400 300
needs virtual "${client_packages[@]}" "${mpi_packages[@]}"

group_virtual() {
	# Not the threads that post to full queues for as long as those are full: each try is a turn.
	# shellcheck disable=SC2034 # run_list leaves these out
	local clients=$top/tests/clients without='test_threads*'
	local -x SOFTHCA_CLOCK=virtual SOFTHCA_CLOCK_CPU=0 SOFTHCA_CLOCK_TSC=trap
	local -x SOFTHCA_LINK=latency=1us,bandwidth=10GB/s

	plain_build
	run_list softhca suite.list "virtual: "
	# shellcheck source=tests/clients/ibverbs-utils.sh
	. "$clients/ibverbs-utils.sh"
	pair ib_send_lat 2 ib_send_lat -n 1000
	pair ib_send_bw 2 ib_send_bw -n 1000
	pair ib_read_lat 2 ib_read_lat -n 1000
	run_mpi mpi/virtual.list "virtual: "
	! wanted repeats.sh || run repeats.sh 600 env TEST_BUILD="$build" "$top/tests/mpi/repeats.sh"
	! wanted "repeats.sh 64" || ! in_full "64 ranks, ten times: repeats.sh 64" ||
		run "repeats.sh 64" 900 env TEST_BUILD="$build" "$top/tests/mpi/repeats.sh" 64
	! wanted planted.sh || run planted.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/planted.sh"
}
