#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_fabric.sh - fabrics from outside: they don't see each other, show their objects, and leave nothing however they end.
# $TEST_BUILD is the build tree; softhca is in PATH.
set -uo pipefail

hold="$TEST_BUILD/tests/softhca/test_stat hold"
fabrics=/dev/shm/softhca-$(id -u)
launchers=()
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"

# Other fabrics may come and go meanwhile: ours have names that begin with the pids of our launchers.
none_left() {
	local pid
	for pid in "${launchers[@]}"; do
		! compgen -G "$fabrics/$pid-*" >/dev/null || return 1
	done
}
# shellcheck disable=SC2317 # called by within
has_line() { [ -s "$1" ]; }
# shellcheck disable=SC2317 # called by within
gone() { ! kill -0 "$1" 2>/dev/null; }

# start NAME [OPTION...]: starts a fabric whose command holds objects until $work/NAME.in is closed. Sets launcher and client.
start() {
	local name=$1
	shift
	mkfifo "$work/$name.in"
	# shellcheck disable=SC2086 # a command and its argument
	softhca run "$@" -- $hold <"$work/$name.in" >"$work/$name.out" 2>"$work/$name.err" &
	launcher=$!
	launchers+=("$launcher")
	exec {held}>"$work/$name.in"
	within has_line "$work/$name.out" || return 1
	client=$(head -n 1 "$work/$name.out")
}

fabric_of() { # PID: prints the fabric in the environment of that process
	tr '\0' '\n' <"/proc/$1/environ" | sed -n 's/^SOFTHCA_FABRIC=//p'
}

# counts FABRIC PID: prints "QPs SRQs MRs CQs XRCDs", the numbers of objects that stat shows for that process.
counts() {
	SOFTHCA_FABRIC=$1 softhca stat --json | python3 -c '
import json, sys
pid = int(sys.argv[1])
n = {}
def walk(node, where):
    if isinstance(node, dict):
        if where and pid in (node.get("pid"), node.get("owner_pid"), node.get("owner")):
            n[where] = n.get(where, 0) + 1
        for k, v in node.items():
            walk(v, k.lower().rstrip("s"))
    elif isinstance(node, list):
        for v in node:
            walk(v, str(v["kind"]).lower().rstrip("s") if isinstance(v, dict) and "kind" in v else where)
walk(json.load(sys.stdin), "")
print(*(n.get(k, 0) for k in ("qp", "srq", "mr", "cq", "xrcd")))' "$2"
}

# modes DIR: others can open nothing in the directory, and nobody can write to files of sysfs.
modes() {
	[ "$(stat -c %a "$1")" = 700 ] && [ "$(stat -c %a "$(dirname "$1")")" = 700 ] &&
		[ -z "$(find "$1" -type d ! -perm 700)" ] && [ -z "$(find "$1"/sys.* -type f ! -perm 444)" ] &&
		[ -z "$(find "$1" \( -type f -o -type p \) ! -path "$1/sys.*" ! -perm 600)" ]
}

# A fabric ends in the ordinary way.
start one
one_launcher=$launcher one_client=$client one_held=$held
one=$(fabric_of "$one_client")
[[ -d $one && $one == "$fabrics/$one_launcher-"* ]]
check "the fabric is a directory with its launcher's pid in its name" [ $? -eq 0 ]
modes "$one"
check "modes are 0700, 0600 and 0444" [ $? -eq 0 ]
SOFTHCA_FABRIC=$one softhca stat --json | python3 -m json.tool >/dev/null
check "stat --json parses" [ $? -eq 0 ]
softhca list --json | python3 -m json.tool >/dev/null
check "list --json parses" [ $? -eq 0 ]
check "objects are counted" [ "$(counts "$one" "$one_client")" = "4 1 3 7 1" ]

# Another fabric runs at the same time.
start two
two_launcher=$launcher two_client=$client two_held=$held
two=$(fabric_of "$two_client")
[ "$one" != "$two" ] && [ "$(counts "$two" "$one_client")" = "0 0 0 0 0" ] &&
	[ "$(counts "$one" "$two_client")" = "0 0 0 0 0" ] && [ "$(counts "$two" "$two_client")" = "4 1 3 7 1" ]
check "concurrent fabrics don't see each other" [ $? -eq 0 ]
exec {two_held}>&-
wait "$two_launcher"
check "the command's exit status is passed on" [ $? -eq 0 ]
[ ! -e "$two" ] && [ -d "$one" ]
check "an ended fabric is removed, another stays" [ $? -eq 0 ]

# A fabric of another version: its processes can't be seen. (The version is the last character of the magic.)
other=$(dirname "$one")/other
mkdir -m 700 "$other"
head -c 64K "$one/seg" >"$other/seg"
truncate -s "$(stat -c %s "$one/seg")" "$other/seg"
printf 9 | dd of="$other/seg" bs=1 seek=7 conv=notrunc status=none
softhca list >"$work/list" && [ -d "$other" ] && ! grep -q other "$work/list"
check "a fabric of another version stays, and isn't listed" [ $? -eq 0 ]
rm -r "$other"
exec {one_held}>&-
wait "$one_launcher"
none_left
check "nothing is left after a normal exit" [ $? -eq 0 ]

# A fabric runs inside another one.
# shellcheck disable=SC2016 # for the inner shell
inner=$(softhca run -- bash -c 'echo "$SOFTHCA_FABRIC"; softhca run -- bash -c "echo \$SOFTHCA_FABRIC; ibv_devices | grep -c softhca0"')
[ "$(sed -n 1p <<<"$inner")" != "$(sed -n 2p <<<"$inner")" ] && [ "$(sed -n 3p <<<"$inner")" = 1 ]
check "a nested fabric is another one with one device" [ $? -eq 0 ]
for name in $(sed 2q <<<"$inner"); do
	name=${name##*/}
	launchers+=("${name%%-*}")
done
[ "${#launchers[@]}" -eq 4 ] && none_left
check "nothing is left of nested fabrics" [ $? -eq 0 ]

# The launcher passes on the exit status of a command, and of a command that dies.
softhca run -- sh -c 'exit 37' &
launchers+=($!)
wait $!
[ $? -eq 37 ]
check "an exit status of 37 is passed on" [ $? -eq 0 ]
# shellcheck disable=SC2016
softhca run -- sh -c 'kill -TERM $$' 2>/dev/null &
launchers+=($!)
wait $! 2>/dev/null
[ $? -eq $((128 + 15)) ]
check "a death by SIGTERM is passed on as 143" [ $? -eq 0 ]

# SIGKILL ends the command.
start killed
kill -9 "$client"
wait "$launcher"
[ $? -eq $((128 + 9)) ]
check "a killed command ends the fabric with 137" [ $? -eq 0 ]
exec {held}>&-
within none_left
check "nothing is left after kill -9 of the command" [ $? -eq 0 ]

# SIGKILL ends the launcher: the command may live on, and nothing is left after its end.
start orphan
kill -9 "$launcher"
wait "$launcher" 2>/dev/null
exec {held}>&-
within gone "$client"
check "the command of a killed launcher ends" [ $? -eq 0 ]
within none_left
check "nothing is left after kill -9 of the launcher" [ $? -eq 0 ]

# SIGKILL ends everything at once.
start both
kill -9 "$launcher" "$client"
wait "$launcher" 2>/dev/null
exec {held}>&-
within none_left
check "nothing is left after kill -9 of both" [ $? -eq 0 ]

# Two programs of one fabric see each other.
# shellcheck disable=SC2016 # for the inner shell
timeout 60 softhca run -- bash -c 'ibv_rc_pingpong -p 18599 >/dev/null & server=$!
	for ((i = 0; i < 100; i++)); do ibv_rc_pingpong -p 18599 localhost && break; sleep 0.1; done && wait $server' >"$work/pp" 2>&1
check "two programs of a fabric talk" [ $? -eq 0 ]

# With little address space there is a sentence at the start, or at the first queue that doesn't fit, and no signal.
under() { # KIB COMMAND...: with that limit
	local kib=$1
	shift
	softhca run --nodes 4 --memlock unlimited -- bash -c 'ulimit -v "$0"; exec timeout 60 "$@"' "$kib" "$@" >"$work/as" 2>&1
}
lacks='[0-9]* [KM]iB of addresses are needed beside [0-9]* [KM]iB that are mapped, and the limit is [0-9]* MiB: raise it (ulimit -v)'
under 200000 ibv_devinfo
[ $? -eq 255 ] && [ "$(grep -c "^softhca: The fabric .* can't be mapped: $lacks; lower limits of its adapters (--max-mr, " "$work/as")" = 1 ]
check "too few addresses for the tables are said at the start" [ $? -eq 0 ]
SOFTHCA_MAX_MR=1000 SOFTHCA_MAX_QP=1000 SOFTHCA_MAX_SRQ=1000 SOFTHCA_MAX_CQ=1000 under 200000 ibv_devinfo
check "lower limits of the adapters need fewer addresses" [ $? -eq 0 ]
under 2000000 "$TEST_BUILD/tests/softhca/test_events"
check "processes talk below a limit of addresses" [ $? -eq 0 ]
under 2000000 "$TEST_BUILD/tests/softhca/test_space"
status=$?
[ $status -gt 0 ] && [ $status -lt 124 ] && grep -q "^softhca: The queues of a process can't be mapped: $lacks" "$work/as"
check "a queue for which there are no addresses fails, and is said" [ $? -eq 0 ]

# Shared memory is full, in a mount namespace.
on_shm() { # SIZE COMMAND: with a /dev/shm of that size
	unshare -rm sh -c 'mount -t tmpfs -o size="$0" tmpfs /dev/shm && eval "$1"' "$1" "$2" >"$work/shm" 2>&1
}
if on_shm 64k true; then
	on_shm 64k "softhca run -- true"
	[ $? -eq 125 ] && [ "$(grep -c "^softhca: A fabric can't be made: there is no space in /dev/shm (64 KiB of 64 KiB are free, [0-9]* [KM]iB are needed): enlarge it .*, or clean it" "$work/shm")" = 1 ]
	check "a fabric that has no room says so" [ $? -eq 0 ]
	on_shm 16m "softhca run -- sh -c 'cat /dev/zero >/dev/shm/fill; exec $TEST_BUILD/tests/softhca/test_cq'"
	[ $? -ne 0 ] && [ "$(grep -c "^softhca: There is no space in /dev/shm ([0-9]* KiB of 16 MiB are free, [0-9]* [KM]iB are needed): enlarge it .*, or clean it" "$work/shm")" = 1 ]
	check "shared memory that is full fails verbs, and is said once" [ $? -eq 0 ]
	on_shm 16m "softhca run -- $TEST_BUILD/tests/softhca/test_space full"
	[ $? -eq 0 ] && [ "$(grep -c "^softhca: There is no space in /dev/shm ([0-9]* KiB of 16 MiB are free, [0-9]* [KM]iB are needed): enlarge it .*, or clean it" "$work/shm")" = 1 ]
	check "a completion queue for which memory has run out is in error" [ $? -eq 0 ]
else
	echo "ok full shared memory # SKIP a file system can't be mounted"
fi

exit $bad
