# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group virtual: programs of other groups in virtual time. Sourced by run.sh.

takes virtual 165 700
needs virtual "${client_packages[@]}" "${mpi_packages[@]}" "${program_packages[@]}"

# Figures of perftest, on a link of 1 us and 10 GB/s. A message costs a post (100 ns), a poll that finds it (15 and 35 ns), and
# the latency; perftest counts 2^20 bytes as MB.
perftest_figures() {
	alone "ib_send_lat: latency and prices within 5 %" --nodes 2 -- \
		"$clients/figure" 6 1.0925 1.2075 "$clients/pair" 1 ib_send_lat -n 1000
	alone "ib_send_bw: the link within 2 %" --nodes 2 -- \
		"$clients/figure" 4 9346 9727 "$clients/pair" 1 ib_send_bw -n 1000
	# The next two look for the message in memory, without a call: each turn takes a quantum.
	alone "ib_write_lat: latency and prices within 5 %" --nodes 2 --clock-quantum 1ms -- \
		"$clients/figure" 5 1.045 1.155 "$clients/pair" 1 ib_write_lat -n 100
	alone "ib_write_bw: the link within 2 %" --nodes 2 -- \
		"$clients/figure" 4 9346 9727 "$clients/pair" 1 ib_write_bw -n 1000
	pair ib_read_lat 2 ib_read_lat -n 1000
	pair ib_atomic_lat 2 ib_atomic_lat -n 1000
}

ucx_perftests() {
	local tl test perftest

	find_ucx_perftest
	for tl in rc_v ud_v; do
		for test in tag_lat tag_bw; do
			pair "ucp-$tl-$test" 2 env UCX_TLS=$tl UCX_NET_DEVICES=softhca0:1 "${perftest[@]}" -t $test -s 8 -n 500 -w 50
		done
	done
	pair ucp-rc_v-tag_lat-sleeping 2 env UCX_TLS=rc_v UCX_NET_DEVICES=softhca0:1 "${perftest[@]}" -t tag_lat -s 8 -n 100 -w 10 -E sleep
	pair uct-rc_verbs-am_lat 2 "${perftest[@]}" -d softhca0:1 -x rc_verbs -t am_lat -n 1000 -w 50
}

group_virtual() {
	# test_threads posts to full queues until there is room. Each try is a turn, so it runs below with CPU time.
	# shellcheck disable=SC2034 # run_list leaves these out
	local clients=$top/tests/clients without='test_threads*'
	local -x SOFTHCA_CLOCK=virtual SOFTHCA_CLOCK_CPU=0
	local -x SOFTHCA_LINK=latency=1us,bandwidth=10GB/s
	# Messages in shared memory are late where the kernel is older than Linux 6.11. Some lines set the parameter themselves.
	local -x OMPI_MCA_pml_tupleq_intranode=hca

	plain_build
	run_list softhca suite.list "virtual: "
	! wanted "virtual: test_threads" ||
		run "virtual: test_threads" 300 softhca run --clock-cpu 1 -- "$build/tests/softhca/test_threads"
	# shellcheck source=tests/clients/ibverbs-utils.sh
	. "$clients/ibverbs-utils.sh"
	ucx_perftests
	# shellcheck source=tests/clients/openmpi.sh
	. "$clients/openmpi.sh"
	run_mpi mpi/virtual.list "virtual: "
	run_mpi programs/virtual.list "virtual: "
	! wanted repeats.sh || run repeats.sh 600 env TEST_BUILD="$build" "$top/tests/mpi/repeats.sh"
	! wanted "repeats.sh 64" || ! in_full "64 ranks, ten times: repeats.sh 64" ||
		run "repeats.sh 64" 900 env TEST_BUILD="$build" "$top/tests/mpi/repeats.sh" 64
	! wanted transport/repeats.sh || run transport/repeats.sh 600 env TEST_BUILD="$build" "$top/tests/transport/repeats.sh"
	! wanted virtual_life.sh || run virtual_life.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/virtual_life.sh"
	! wanted planted.sh || run planted.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/planted.sh"
	! wanted virtual_turns.sh || run virtual_turns.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/virtual_turns.sh"
	! wanted virtual_syncs.sh || run virtual_syncs.sh 240 env TEST_BUILD="$build" "$top/tests/mpi/virtual_syncs.sh"
	! wanted virtual_within.sh || run virtual_within.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/virtual_within.sh"
	! wanted virtual_service.sh || run virtual_service.sh 120 env TEST_BUILD="$build" "$top/tests/mpi/virtual_service.sh"
	if in_full "the lines of mpi/virtual_long.list, perftest and ucx_perftest in virtual time"; then
		run_mpi mpi/virtual_long.list "virtual: "
		# shellcheck source=tests/clients/perftest.sh
		. "$clients/perftest.sh"
		# shellcheck source=tests/clients/ucx.sh
		. "$clients/ucx.sh"
	fi
	in_turn
	perftest_figures
}
