#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_capture.sh - softhca run --pcap: what tshark reads in the file against what programs posted (by --trace), on both link layers,
# in real and in virtual time, with RNR NAKs, lost messages and killed processes; and refusals. SOFTHCA is the program, TEST_BUILD
# the build.
softhca=${SOFTHCA:?set it to the path of softhca}
tests=${TEST_BUILD:?set it to the build}/tests
here=$(cd "$(dirname "$0")" && pwd)
pair=$here/../clients/pair
tmp=$(mktemp -d)
trap 'umount "$tmp/small" 2>/dev/null; rm -rf "$tmp"' EXIT

# shellcheck source=tests/check.sh
. "$here/../check.sh"
evidence=$tmp/err

# capture OPTION... -- COMMAND...: runs COMMAND in a fabric of two nodes, with a capture and a trace.
capture() {
	"$softhca" run --nodes 2 --memlock unlimited --trace "$tmp/trace" --pcap "$tmp/pcap" "$@" >"$tmp/out" 2>"$tmp/err"
}

# verify CHECK...: capture.py finds the capture right, and the folder of its parts is gone.
verify() {
	"$here/capture.py" "$tmp/pcap" "$@" 2>>"$tmp/err" && [ ! -e "$tmp/pcap.parts" ]
}

# posted CHECKS OPTION... -- COMMAND...: the capture has what COMMAND posted.
posted() {
	local checks
	read -ra checks <<<"$1"
	shift
	capture "$@" && verify "$tmp/trace" "${checks[@]}"
	local status=$?
	rm -f "$tmp/pcap"
	return $status
}

# perftest CHECKS PROGRAM [OPTION...]: the same of a pair of perftest.
perftest() {
	local wanted=$1
	shift
	posted "$wanted" -- "$pair" 1 "$@" -F -n 20
}

# roce CHECKS GID-INDEX: on Ethernet ports.
roce() {
	posted "$1" --link-layer ethernet -- "$pair" 1 ib_send_lat -F -n 20 -s 5001 -x "$2"
}

# Sends that find no receive: NAKs with the code of the receiver's timer, and the message once more.
rnr() {
	capture -- "$tests/softhca/test_rnr" && verify rnr=5 retries=5
}

lost() {
	posted "retries=1" --fault-drop 0.2 -- "$pair" 1 ib_send_lat -F -n 30 -s 5001
}

refused_by_peer() {
	capture -- "$tests/softhca/test_errors" && verify nak=3
}

# Sends that invalidate windows have an IETH.
invalidating() {
	capture -- "$tests/softhca/test_windows" && verify inv=2
}

# The environment names the file, too.
by_environment() {
	SOFTHCA_PCAP=$tmp/pcap "$softhca" run -- "$tests/softhca/test_wr_api" >"$tmp/out" 2>"$tmp/err" && verify interfaces=1
}

in_virtual_time() {
	local run=(--clock virtual --clock-cpu 0 --clock-tsc trap --link "latency=1us,bandwidth=1GB/s")

	capture "${run[@]}" -- "$tests/softhca/test_rc" && mv "$tmp/pcap" "$tmp/first" &&
		capture "${run[@]}" -- "$tests/softhca/test_rc" && verify "$tmp/trace" "same=$tmp/first" &&
		posted interfaces=2 "${run[@]}" -- "$pair" 1 ib_send_lat -F -n 20 -s 5001
}

# Kills both processes of a pair when their files have grown. The files that they leave have all that was sent.
kill_pair() {
	local parts=$tmp/pcap.parts

	"$pair" 1 ib_send_lat -F -D 60 -s 64 &
	until [ "$(cat "$parts"/* | wc -c)" -gt 200000 ]; do
		kill -0 $! || return 1
	done
	# shellcheck disable=SC2046 # several numbers
	kill -KILL $(cat "/proc/$!/task/$!/children") || return 1
	wait $!
	for part in "$parts"/*; do
		tshark -r "$part" >/dev/null || return 1
	done
	return 0
}

killed() {
	export -f kill_pair
	export pair tmp
	capture -- bash -c kill_pair && verify packets=500
}

# refused TEXT FILE: exit status 125, and a sentence with TEXT; the command doesn't run.
refused() {
	local status=0

	"$softhca" run --pcap "$2" -- touch "$tmp/ran" 2>"$tmp/err" || status=$?
	[ "$status" -eq 125 ] && grep -q -- "$1" "$tmp/err" && [ ! -e "$tmp/ran" ]
}

in_the_way() {
	mkdir "$tmp/other.parts"
	refused "another run may be writing its capture there" "$tmp/other"
}

# On a file system that fills up the run goes on, and says that its capture ends early.
full() {
	"$softhca" run --pcap "$tmp/small/file" -- "$tests/softhca/test_qp_work" >"$tmp/out" 2>"$tmp/err" &&
		grep -q "The capture of process .* ends early, because its file can't grow" "$tmp/err"
}

check "sends" perftest "interfaces=2 mtu=4096" ib_send_lat -s 5001
check "sends, with another MTU" perftest mtu=1024 ib_send_lat -m 1024 -s 5001
check "sends of XRC, with their SRQs" perftest "interfaces=2 mtu=4096" ib_send_lat -c XRC -s 5001
check "datagrams" perftest "interfaces=2 grh=0" ib_send_lat -c UD -s 1001
check "datagrams with a GRH" perftest "interfaces=2 grh=20" ib_send_lat -c UD -s 1001 -x 0
check "sends of UC" perftest mtu=4096 ib_send_bw -c UC -s 5001
check "writes" perftest mtu=4096 ib_write_bw -s 50000
check "writes of XRC" perftest mtu=4096 ib_write_bw -c XRC -s 50000
check "reads" perftest mtu=4096 ib_read_lat -s 50000
check "atomic operations of XRC" perftest ack=20 ib_atomic_bw -c XRC
check "immediate data, atomics, empty messages" posted imm=2 -- "$tests/softhca/test_rc"
check "libtupleq" posted interfaces=1 -- "$tests/transport/test_match"
check "RoCE v1" roce v1=20 0
check "RoCE v2 on IPv4" roce v2=20 3
check "RoCE v2 on IPv6" roce v2=20 1
check "messages without a receive" rnr
check "messages that are refused" refused_by_peer
check "messages that are lost" lost
check "sends that invalidate windows" invalidating
check "an option of the environment" by_environment
check "virtual time: the same run, the same capture" in_virtual_time
check "processes that are killed" killed
check "no such folder" refused "The folder .* for a capture can't be made" "$tmp/none/file"
check "another run's folder in the way" in_the_way
if mkdir "$tmp/small" && mount -t tmpfs -o size=256k none "$tmp/small" 2>"$tmp/err"; then
	check "a file system that is full" full
else
	echo "ok a file system that is full # SKIP no right to mount one"
fi
exit $bad
