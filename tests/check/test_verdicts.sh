#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_verdicts.sh - the verdicts of tupleq-check on adapters that lack something, and its sentences. softhca and tupleq-check are in
# PATH, and TEST_BUILD is the build.
set -uo pipefail
: "${TEST_BUILD:?set it to the build}"

dir=$(mktemp -d)
out=$dir/out
trap 'rm -rf "$dir"' EXIT
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$out
shim=$TEST_BUILD/tests/check/.libs/shim.so

# ends STATUS TEXT COMMAND...: returns true if the command ends with this status and its output has the text.
ends() {
	local wanted=$1 text=$2 status=0
	shift 2
	timeout 60 "$@" >"$out" 2>&1 || status=$?
	echo "status $status" >>"$out"
	[ "$status" -eq "$wanted" ] && grep -qF -- "$text" "$out"
}

# on OPTIONS STATUS TEXT [OPTION of tupleq-check...]: checks a run on an adapter with these options of softhca run.
on() {
	local options=$1 status=$2 text=$3
	shift 3
	# shellcheck disable=SC2086 # several words
	check "${options:-as it is}${*:+, $*}: $text" ends "$status" "$text" softhca run $options -- tupleq-check "${@:---no-prices}"
}

# refuses OPTIONS TEXT: the same, of what TupleQ doesn't work without.
refuses() {
	on "$1" 1 "softhca0 port 1: no, because $2"
}

# lacks OPTIONS TEXT: the same, of what TupleQ works without.
lacks() {
	on "$1" 0 "$2" && check "$1: works" grep -qx "softhca0 port 1: works" "$out"
}

# without FAULT STATUS TEXT: a run behind the library that makes this fault.
without() {
	# shellcheck disable=SC2016 # the inner shell's
	check "$1: $3" ends "$2" "$3" softhca run -- sh -c 'LD_PRELOAD=$0:$LD_PRELOAD CHECK_SHIM=$1 exec tupleq-check --no-prices' "$shim" "$1"
}

# agrees OPTIONS: checks that libtupleq opens an endpoint on an adapter with these options if the facts say that it works, and only then.
agrees() {
	local opens facts

	# shellcheck disable=SC2086 # several words
	softhca run $1 -- "$TEST_BUILD/tests/check/opens" "$dir" >"$out" 2>&1
	opens=$?
	# shellcheck disable=SC2086 # several words
	softhca run $1 -- tupleq-check --facts >>"$out" 2>&1
	facts=$?
	check "$1: as libtupleq says" test "$opens" -eq "$facts"
}

# all_pass: returns true if a run finds nothing that lacks, and passes all tests.
all_pass() {
	ends 0 "softhca0 port 1: works" softhca run --memlock unlimited -- tupleq-check --no-prices &&
		[ "$(grep -c '^  ok ' "$out")" -eq 22 ] && ! grep -qE '^  (lacks|bad|failed|not run) ' "$out"
}

check "an adapter with everything" all_pass

refuses "--xrc no" "it has no XRC (extended reliable connections); use an adapter of the drivers mlx4, mlx5 or hns"
refuses "--open-qp no" "it has XRC, but ibv_open_qp() fails (Operation not supported); use an adapter of the drivers mlx4, mlx5 or hns"
refuses "--max-srq 1" "it has too few shared receive queues: 2 of 16 entries are needed; use another adapter"
refuses "--max-srq-wr 15" "it has too few shared receive queues"
refuses "--max-qp-wr 15" "its queue pairs are too short: 16 entries are needed; use another adapter"
refuses "--max-qp 1" 'the test "an XRC domain and its target QP shared by two processes" failed: ibv_create_qp_ex() of a target'
refuses "--max-mr 1" 'the test "an XRC domain and its target QP shared by two processes" failed: ibv_reg_mr() of 135168 bytes fails (Cannot allocate memory); raise'
refuses "--memlock 16K" 'the test "an XRC domain and its target QP shared by two processes" failed: ibv_reg_mr()'
refuses "--pkeys 0x7fff" "the port is a limited member of its partition"
refuses "--fault-qp 1" 'the test "a message waits for its receive" failed: a message ended before its receive was posted: remote operation error; see'
on "--fault-qp 1" 1 "  not run messages keep their order: an earlier test failed"

for options in "--max-srq 1" "--max-srq 2" "--max-srq-wr 15" "--max-srq-wr 16" "--max-qp-wr 15" "--max-qp-wr 16" "--max-sge 1 --max-srq-sge 1" \
	"--max-inline 0" "--max-msg-sz 4096" "--pkeys 0x8001" "--xrc no" "--open-qp no" "--odp off" "--null-mr no" "--atomics no" \
	"--link-layer ethernet" "--grh-required yes"; do
	agrees "$options"
done

lacks "--null-mr no" "  lacks  null MR        Operation not supported"
lacks "--odp off" "  lacks  ODP            not implicit on XRC"
lacks "--odp explicit" "  lacks  ODP            not implicit on XRC"
lacks "--atomics no" "  lacks  atomics        none"
lacks "--atomics no" "  not run atomic operations: it has no atomic operations"
lacks "--max-srq 3" "  lacks  SRQs           number 3, "
lacks "--max-srq 2" "  lacks  SRQs           number 2, "
lacks "--max-srq-wr 16 --max-qp-wr 16" "  ok     SRQs           number 131072, depth 16, pieces 31"
lacks "--max-srq-sge 1" "  not run a message that is too long is cut: the receives of its SRQs have one piece"
lacks "--max-inline 0" "  lacks  inline data    0 bytes of 256"
lacks "--memlock 1M" "  lacks  locked memory  1024 KiB at once"
lacks "--link-layer ethernet" "  ok     address        GID index "
lacks "--grh-required yes" "  ok     address        GID index 0"
lacks "--pkeys 0x8001" "  ok     partition      0x8001"
lacks "--pkeys 0x7fff,0x8001" "  ok     partition      0x8001"
lacks "--fault-rnr 0.5 --fault-drop 0.1 --reorder 3" "  ok     a killed process"
lacks "--copy double" "  ok     a killed process"
on "--devices 2" 0 "softhca1 port 1: works"
on "--devices 2" 0 "softhca1 port 1: works" --facts --device softhca1
check "only that device" test "$(grep -c ' port 1: ' "$out")" -eq 1

check "prices as text" ends 0 "  post a send inline                        8            -  no queue pair takes inline data" \
	softhca run --max-inline 0 -- tupleq-check
check "prices as text: a median and quartiles" grep -qE '^  create an SRQ  +[0-9.]+  \[[0-9.]+, [0-9.]+\]$' "$out"

without rights 1 "softhca0: no, because it can't be opened (Permission denied); let this user read and write /dev/infiniband/uverbs*."
without down 1 "softhca0 port 1: no, because the port is not active; check the cable and the subnet manager; ibv_devinfo shows the state."
without unready 1 "softhca0: no, because its attributes can't be queried (Input/output error); see the kernel's log (dmesg)"
without gone 1 "failed: ibv_modify_qp() fails (Input/output error); see the kernel's log (dmesg): the adapter has gone, or is being reset."

on "" 1 "there is no RDMA device called mlx5_0; ibv_devinfo lists the devices" --device mlx5_0
on "" 1 "there is no port softhca0:2; ibv_devinfo lists the devices and their ports" --device softhca0:2
on "" 2 '":1" is no name of a device' --device :1
on "" 2 '"softhca0:x" names no port' --device softhca0:x
on "" 2 '"softhca0" is no option; a device is named by --device' softhca0
on "" 2 "unrecognized option '--hepl'" --hepl
on "" 2 "--partner is for tupleq-check itself" --partner softhca0:1
on "" 0 "Usage: tupleq-check [OPTION...]" --help
# may_open COUNT: a run with so few files works, or says what to do.
may_open() {
	softhca run -- sh -c "ulimit -n $1 && exec tupleq-check --no-prices" >"$out" 2>&1
	grep -qE "^softhca0 port 1: works$|raise the limit of open files \(ulimit -n\)\.$" "$out"
}

for count in 5 6 7 8 9 10 11 12 13 14 15 16; do
	check "$count open files" may_open "$count"
done
# shellcheck disable=SC2016 # the inner shell's
for option in --facts "--facts --json"; do
	check "a full disk: $option" ends 1 "The report can't be written: No space left on device." \
		softhca run -- sh -c "tupleq-check $option >/dev/full"
done
if [ -e /sys/class/infiniband ]; then
	echo "ok no device # SKIP this machine has adapters"
else
	check "no device" ends 1 "TupleQ doesn't work on this host, because no RDMA device was found; check with lspci" tupleq-check
fi
exit "$bad"
