# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group rdmacm: unmodified librdmacm, with the programs of others that use it. Sourced by run.sh.

takes rdmacm 50
needs rdmacm "${rdmacm_packages[@]}"

rdmacm=$top/tests/rdmacm
server=10.77.0.1               # node 0
server_ipv6=fd00:10:77::1      # the same
port=$((20000 + RANDOM % 12000)) # of TCP, for the programs that meet there, each at the next one

# on LAYER NAME COMMAND...: runs a command on two nodes.
on() {
	local layer=$1 name=$2-$1
	shift 2
	! wanted "$name" || pass_or_fail "$name" 120 softhca run --nodes 2 --link-layer "$layer" -- "$@"
}

# program LAYER NAME: runs a program of others, by its name.
program() {
	local layer=$1 name=$2

	port=$((port + 1))
	case $name in
	rping) set -- listening rping -s -C 20 -V -- rping -c -C 20 -V -a $server ;;
	rdma_client) set -- listening rdma_server -- rdma_client -s $server ;;
	ucmatose) set -- listening ucmatose -c 10 -- ucmatose -c 10 -s $server ;;
	ucmatose-migrate) set -- listening ucmatose -m -- ucmatose -m -s $server ;;
	rdma_xclient) set -- listening rdma_xserver -- rdma_xclient -s $server ;;
	rdma_xclient-XRC) set -- listening rdma_xserver -c x -- rdma_xclient -c x -s $server ;;
	rping-IPv6) set -- listening rping -s -a $server_ipv6 -C 20 -V -- rping -c -a $server_ipv6 -C 20 -V ;;
	ucmatose-IPv6) set -- listening ucmatose -b $server_ipv6 -c 10 -- ucmatose -s $server_ipv6 -c 10 ;;
	udaddy-IPv6) set -- listening udaddy -b $server_ipv6 -c 4 -- udaddy -s $server_ipv6 -c 4 ;;
	udaddy) set -- listening udaddy -c 4 -- udaddy -c 4 -s $server ;;
	cmtime) set -- listening -k cmtime -c 200 -- cmtime -c 200 -s $server ;;
	# Its exit status says nothing.
	mckey) set -- resolved bash -c "mckey -m 224.0.1.2 -b $server | grep 'data transfers complete'" -- \
		mckey -m 224.0.1.2 -b 10.77.0.2 -s ;;
	rstream) set -- listening rstream -S 10000 -- rstream -S 10000 -s $server ;;
	riostream) set -- listening riostream -S 10000 -- riostream -S 10000 -s $server ;;
	ib_send_bw-UD) set -- listening ib_send_bw -R -c UD -F -n 500 -- ib_send_bw -R -c UD -F -n 500 $server ;;
	ib_send_bw-UD-8-QPs) set -- listening ib_send_bw -R -c UD -q 8 -F -n 200 -- ib_send_bw -R -c UD -q 8 -F -n 200 $server ;;
	ib_*-SRQ) set -- listening "${name%-SRQ}" -R --use-srq -F -n 200 -- "${name%-SRQ}" -R --use-srq -F -n 200 $server ;;
	ib_*-events) set -- listening "${name%-events}" -R -e -F -n 200 -- "${name%-events}" -R -e -F -n 200 $server ;;
	ib_*-both-ways) set -- listening "${name%-both-ways}" -R -b -F -n 200 -- "${name%-both-ways}" -R -b -F -n 200 $server ;;
	ib_*-inline) set -- listening "${name%-inline}" -R -I 64 -s 64 -F -n 200 -- "${name%-inline}" -R -I 64 -s 64 -F -n 200 $server ;;
	ib_write_bw-8-QPs) set -- listening ib_write_bw -R -q 8 -F -n 500 -- ib_write_bw -R -q 8 -F -n 500 $server ;;
	ib_*) set -- listening "$name" -R -F -n 500 -- "$name" -R -F -n 500 $server ;;
	fi_pingpong-msg) set -- tcp:$port fi_pingpong -B $port -p verbs -e msg -- fi_pingpong -P $port -p verbs -e msg $server ;;
	fi_pingpong-rdm) set -- tcp:$port fi_pingpong -B $port -p "verbs;ofi_rxm" -e rdm -- fi_pingpong -P $port -p "verbs;ofi_rxm" -e rdm $server ;;
	rcopy)
		on "$layer" rcopy "$rdmacm/copy"
		return
		;;
	NPtcp-by-rsockets)
		set -- listening -k "$rdmacm/by_rsockets" NPtcp -n 5 -u 100000 -- "$rdmacm/by_rsockets" NPtcp -h $server -n 5 -u 100000 -o /dev/null
		;;
	fio)
		set -- --ioengine=rdma --hostname=$server --port=5555 --verb=write --bs=64k --size=4m --iodepth=4
		set -- listening fio --name=server --rw=read "$@" -- fio --name=client --rw=write "$@"
		;;
	qperf) set -- tcp:$port -k qperf -lp $port -- qperf -lp $port -cm1 -t 1 $server rc_lat rc_bw rc_rdma_write_bw ;;
	esac
	case $name in
	ib_* | qperf) on "$layer" "$name" "$rdmacm/again" "$rdmacm/pair" "$@" ;;
	*) on "$layer" "$name" "$rdmacm/pair" "$@" ;;
	esac
}

# script LAYER NAME [ARGUMENT...]: runs a script of this folder that prints its tests.
script() {
	local layer=$1 name=$2
	shift 2
	! wanted "$name-$layer" || run "$name-$layer" 300 "$rdmacm/$name" "$build" "$layer" "$@"
}

# own_test NAME [OPTION of softhca run...]
own_test() {
	local test=$1
	shift
	! wanted "$test $*" || run "$test $*" 120 softhca run --nodes 2 "$@" -- "$build/tests/rdmacm/$test"
}

# timed_test LAYER LATENCY TRIP: a message of 256 bytes takes TRIP ns on a link of that latency and of 256 bytes each microsecond.
timed_test() {
	local price free=(--clock-cpu 0)

	for price in event call time wait; do
		free+=("--price-$price" 0)
	done
	! wanted "test_time $1 $2" || run "test_time $1 $2" 120 softhca run --nodes 2 --link-layer "$1" --clock virtual "${free[@]}" \
		--link "latency=$2,bandwidth=256MB/s" -- "$build/tests/rdmacm/test_time" "$3"
}

build_own_tests() {
	local test

	mkdir -p "$build/tests/rdmacm"
	for test in test_address test_connection test_death test_descriptors test_time; do
		logged "$build/tests/rdmacm/$test.log" gcc -std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE -o "$build/tests/rdmacm/$test" \
			"$rdmacm/$test.c" "$rdmacm/cm.c" "$top/tests/softhca/check.c" "$top/tests/softhca/stat.c" \
			-lcmocka -ljansson -lrdmacm -libverbs || die "$test.c couldn't be built"
	done
}

group_rdmacm() {
	local layer name programs=(rping rping-IPv6 ucmatose-IPv6 udaddy-IPv6 rdma_client ucmatose ucmatose-migrate rdma_xclient rdma_xclient-XRC udaddy cmtime mckey rstream
		riostream rcopy ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_atomic_bw ib_atomic_lat
		ib_send_bw-UD ib_write_bw-8-QPs ib_send_bw-UD-8-QPs ib_send_bw-SRQ ib_send_bw-events ib_read_bw-events
		ib_send_bw-both-ways ib_write_bw-both-ways ib_read_bw-both-ways ib_send_bw-inline ib_write_bw-inline qperf fi_pingpong-msg
		fi_pingpong-rdm fio NPtcp-by-rsockets)

	plain_build
	build_own_tests
	own_test test_connection --clock virtual
	own_test test_descriptors
	own_test test_descriptors --clock virtual
	own_test test_death
	# cmtime waits for conditions, and takes each wake-up for a signal. Its exit status doesn't say that connections failed.
	! wanted cmtime-virtual || pass_or_fail cmtime-virtual 120 softhca run --nodes 2 --clock virtual -- "$rdmacm/pair" listening \
		-k cmtime -c 20 -- bash -c "set -o pipefail; cmtime -c 20 -s $server | awk '{ print } /^event:/ { bad = 1 } END { exit bad }'"
	timed_test infiniband 1us 2000
	timed_test infiniband 6ms 6001000
	timed_test ethernet 1us 2000
	for layer in infiniband ethernet; do
		own_test test_address --link-layer $layer
		own_test test_connection --link-layer $layer
		for name in "${programs[@]}"; do
			program $layer "$name"
		done
		for name in pyverbs.sh ucx.sh librpma.sh; do
			script $layer $name
		done
	done
}
