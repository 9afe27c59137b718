# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# perftest: every test, on each transport that perftest has for the test.

: "${clients:?set by tests/run.sh}"

# latency_with_events NAME PROGRAM...: runs a latency test on a device whose armed CQs report new completions only. These tests arm
# before they poll, and take any event for the completion that they wait for. If arming fired for unpolled completions, they would
# run ahead of their peer, into its empty receive queue and over their own send queue.
latency_with_events() {
	local name=$1
	shift
	alone "$name" --nodes 2 --cq-arm new -- "$clients/pair" 1 "$@"
}

for test in ib_send_bw ib_send_lat; do
	for transport in RC UC UD XRC; do
		pair "$test-$transport" 2 $test -c $transport -F -n 1000
	done
	pair "$test-RC" 1 $test -F -n 1000
	pair "$test-XRC" 1 $test -c XRC -F -n 1000
	pair "$test-SRQ" 2 $test --use-srq -F -n 1000
done
for transport in RC UD XRC; do
	pair "ib_send_bw-$transport-events" 2 ib_send_bw -c $transport -e -F -n 200
	latency_with_events "ib_send_lat-$transport-events" ib_send_lat -c $transport -e -F -n 200
done
for transport in RC UC UD XRC; do
	pair "ib_send_bw-$transport-both-ways" 2 ib_send_bw -c $transport -b -F -n 1000
done
pair ib_send_bw-8-QPs 2 ib_send_bw -q 8 -F -n 500
pair ib_send_bw-inline 2 ib_send_bw -I 64 -s 64 -F -n 1000
pair ib_send_bw-post-list 2 ib_send_bw -l 16 -F -n 1600

for test in ib_write_bw ib_write_lat; do
	for transport in RC UC XRC; do
		pair "$test-$transport" 2 $test -c $transport -F -n 1000
	done
done
pair ib_write_bw-RC-both-ways 2 ib_write_bw -b -F -n 1000

for test in ib_read_bw ib_read_lat; do
	for transport in RC XRC; do
		pair "$test-$transport" 2 $test -c $transport -F -n 1000
	done
done
pair ib_read_bw-RC-events 2 ib_read_bw -e -F -n 200
latency_with_events ib_read_lat-RC-events ib_read_lat -e -F -n 200
pair ib_read_bw-RC-both-ways 2 ib_read_bw -b -F -n 1000

for test in ib_atomic_bw ib_atomic_lat; do
	for transport in RC XRC; do
		for operation in CMP_AND_SWAP FETCH_AND_ADD; do
			pair "$test-$transport-$operation" 2 $test -c $transport -A $operation -F -n 1000
		done
	done
done

for transport in RC UC UD XRC; do
	alone "ib_send_bw-$transport-RoCE" --nodes 2 --link-layer ethernet -- "$clients/pair" 1 ib_send_bw -c $transport -F -n 1000
done

if in_full "perftest's programs with messages of all sizes"; then
	for test in ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat; do
		pair "$test-RC-all-sizes" 2 $test -a -F -n 10
	done
	for test in ib_send_bw ib_send_lat; do
		pair "$test-XRC-all-sizes" 2 $test -c XRC -a -F -n 10
	done
fi
