#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_clock.sh - virtual time by the launcher: its refusals and messages, and runs that repeat exactly. SOFTHCA is the program,
# TEST_BUILD the build.
softhca=${SOFTHCA:?set it to the path of softhca}
tests=${TEST_BUILD:?set it to the build}/tests/softhca
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$tmp/err
: >"$evidence"

# refused TEXT OPTION...: the launcher exits with status 2 and a sentence with TEXT.
refused() {
	local text=$1 status=0
	shift
	"$softhca" run "$@" -- true 2>"$tmp/err" || status=$?
	[ "$status" -eq 2 ] && grep -q -- "$text" "$tmp/err"
}

link_is_said() {
	"$softhca" run --clock virtual -- true 2>"$tmp/err" && grep -q "no link is given: --link latency" "$tmp/err"
}

# link_off: an explicit "off" silences the message, as an option and in the environment.
link_off() {
	"$softhca" run --clock virtual --link off -- true 2>"$tmp/err" && [ ! -s "$tmp/err" ] &&
		SOFTHCA_LINK=off "$softhca" run --clock virtual -- true 2>"$tmp/err" && [ ! -s "$tmp/err" ]
}

# warned TEXT COMMAND...: runs COMMAND. One line of the messages has TEXT.
warned() {
	local text=$1
	shift
	"$softhca" run --clock virtual --link latency=1us -- "$@" 2>"$tmp/err" >/dev/null
	[ "$(grep -c "$text" "$tmp/err")" -eq 1 ]
}

# warned_by_path PATH: a static program is found with that PATH, behind a folder of its name.
warned_by_path() {
	(cd "$tmp" && mkdir -p folders/null && PATH=$1:$PATH warned "null is linked statically" null)
}

# not_warned COMMAND...: runs COMMAND, which succeeds without a message of softhca.
not_warned() {
	"$softhca" run --clock virtual --link latency=1us -- "$@" 2>"$tmp/err" >/dev/null && ! grep -q softhca "$tmp/err"
}

# warned_nobody TEXT COMMAND...: as `warned`, for the user nobody.
as_nobody=(setpriv --reuid nobody --regid nogroup --clear-groups)
warned_nobody() {
	"${as_nobody[@]}" "$softhca" run --clock virtual --link latency=1us -- "${@:2}" 2>"$tmp/err" >/dev/null
	[ "$(grep -c "$1" "$tmp/err")" -eq 1 ]
}

# Random addresses can't be switched off, as in a container. Only a run with --clock-cpu 0 needs that, and says so.
addresses_stay_random() {
	echo 'int *__errno_location(void); int personality(unsigned long p) { *__errno_location() = 1; return p == 0xffffffff ? 0 : -1; }' |
		gcc -shared -fPIC -x c -o "$tmp/refuse.so" - || return 1
	LD_PRELOAD=$tmp/refuse.so "$softhca" run --clock virtual --clock-cpu 0 --link latency=1us -- true 2>"$tmp/err"
	[ "$(grep -c 'Addresses stay random.*Operation not permitted' "$tmp/err")" -eq 1 ] &&
		LD_PRELOAD=$tmp/refuse.so not_warned true
}

# build_null OPTION...: builds a program that does nothing, with these options of gcc.
build_null() {
	echo 'int main(void) { return 0; }' >"$tmp/null.c"
	gcc "$@" -o "$tmp/null" "$tmp/null.c"
}

# Makes a program that runs with the rights of another user.
raised() {
	cp /bin/true "$tmp/raised" && chmod 755 "$tmp" && chown nobody "$tmp/raised" && chmod u+s "$tmp/raised"
}

# Makes a program with the capability CAP_NET_RAW, which users may run and not read.
capable() {
	cp /bin/true "$tmp/capable" && chmod 711 "$tmp/capable" && python3 - "$tmp/capable" 2>"$tmp/err" <<-'END'
		import os, struct, sys
		VFS_CAP_REVISION_2, VFS_CAP_FLAGS_EFFECTIVE, CAP_NET_RAW = 0x02000000, 1, 13
		caps = struct.pack("<5I", VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE, 1 << CAP_NET_RAW, 0, 0, 0)
		os.setxattr(sys.argv[1], "security.capability", caps)
	END
}

# hash SEED: prints the hash of a run.
hash() {
	"$softhca" run --clock virtual --clock-cpu 0 --clock-seed "$1" --clock-report yes --memlock unlimited --nodes 2 \
		--link latency=1us,bandwidth=10GB/s -- "$tests/test_qp_work" 2>"$tmp/err" >/dev/null || return 1
	sed -n 's/.*hash //p' "$tmp/err"
}

# repeats SEED N: N runs have the same hash.
repeats() {
	local i
	for ((i = 0; i < $2; i++)); do
		hash "$1" || return 1
	done | sort -u >"$tmp/hashes"
	[ "$(wc -l <"$tmp/hashes")" -eq 1 ] && grep -q '^[0-9a-f]\{16\}$' "$tmp/hashes"
}

differ() {
	[ "$(hash 1)" != "$(hash 2)" ]
}

# randoms SEED FILE: stores the random numbers that a program gets.
randoms() {
	"$softhca" run --clock virtual --clock-cpu 0 --clock-seed "$1" --memlock unlimited --link latency=1us -- "$tests/randoms" \
		>"$2" 2>"$tmp/err"
}

# randoms_repeat: each function returns the same numbers in two runs, and others with another seed.
randoms_repeat() {
	randoms 5 "$tmp/randoms" && randoms 5 "$tmp/again" && randoms 6 "$tmp/others" && [ -s "$tmp/randoms" ] &&
		diff "$tmp/randoms" "$tmp/again" >"$tmp/err" && ! grep -Fxf "$tmp/randoms" "$tmp/others" >"$tmp/err"
}

# logs: a log has a line for each sync point, and further ones for completions; and two runs have the same log.
logs() {
	local i

	for i in 1 2; do
		"$softhca" run --clock virtual --clock-cpu 0 --clock-report yes --memlock unlimited --nodes 2 --clock-log "$tmp/log.$i" \
			--link latency=1us,bandwidth=10GB/s -- "$tests/test_qp_work" 2>"$tmp/err" >/dev/null || return 1
	done
	[ "$(grep -cv completion "$tmp/log.1")" -eq "$(sed -n 's/.* time, \([0-9]*\) sync.*/\1/p' "$tmp/err")" ] &&
		grep -q 'completion: opcode' "$tmp/log.1" && cmp "$tmp/log.1" "$tmp/log.2" >"$tmp/err"
}

# stall_is_said DOING TEXT: the launcher prints a sentence with TEXT about "clock_stall DOING".
stall_is_said() {
	local run said=0

	"$softhca" run --clock virtual --clock-cpu 0 --clock-stall 200ms --price-arm 0ns --link latency=1us -- \
		"$tests/clock_stall" "$1" 2>"$tmp/err" &
	run=$!
	within grep -q "$2" "$tmp/err" || said=1
	kill -TERM "$run"
	wait "$run"
	return "$said"
}

# attached LAUNCHER: a process has attached to the launcher's fabric.
attached() {
	"$softhca" stat --json "$1" 2>/dev/null | grep -q '"comm"'
}

# death_is_said: when the launcher is killed, its monitor says that it has killed a process in virtual time.
death_is_said() {
	local run said=0

	"$softhca" run --clock virtual --clock-cpu 0 --link latency=1us -- sh -c '"$0" turns & wait' "$tests/clock_stall" 2>"$tmp/err" &
	run=$!
	within attached "$run" || said=1
	kill -KILL "$run"
	wait "$run" 2>/dev/null
	within grep -q "softhca run was killed, so 1 of its processes, which were in virtual time, have been killed" "$tmp/err" || said=1
	return "$said"
}

stat_shows() {
	"$softhca" run --clock virtual --link latency=1us -- "$softhca" stat --json >"$tmp/err" &&
		grep -q '"hash"' "$tmp/err" && grep -q '"actors"' "$tmp/err"
}

check "a clock that there isn't" refused "use one of real|virtual" --clock other
# A program that has the instruction rdtsc reads virtual time by it, without an option.
newcomer() {
	"$softhca" run --nodes 2 --clock virtual --memlock unlimited -- "$(dirname "$0")/../clients/pair" 1 ib_send_lat -F -n 100 >"$tmp/err" 2>&1 &&
		grep -q "t_typical" "$tmp/err" && ! grep -qw inf "$tmp/err"
}
check "perftest without an option" newcomer
check "a factor that is no number" refused "use a number from 0" --clock virtual --clock-cpu fast
check "a negative price" refused "use a time from" --clock virtual --price-post -1
check "a seed that is no number" refused "use a whole number" --clock virtual --clock-seed x
check "a log that can't be written" refused "can't be written" --clock virtual --clock-log "$tmp/none/log"
check "a link is taken and said" link_is_said
check "no link, if that is said" link_off
build_null -static
check "a time before a sentence that is too short" refused "use a time from" --clock virtual --clock-stall 1ms
check "threads that take turns for no time" stall_is_said turns "stands still at .* its threads take turns in calls that cost no time"
check "a job that stays busy" stall_is_said busy "stands still at .* until the job is quiet .* thread [0-9]* (clock_stall) computes"
check "a launcher that is killed" death_is_said
check "a static program" warned "null is linked statically" "$tmp/null"
check "a static program behind others" warned "null is linked statically" env -- "$tmp/null"
check "a static program behind a folder of that name" warned_by_path "$tmp/folders:$tmp"
check "a static program in an empty folder of PATH" warned_by_path ""
build_null -static-pie
check "a static program that may be anywhere" warned "null is linked statically" "$tmp/null"
build_null
check "a program that loads libraries" not_warned "$tmp/null"
check "a library among the words" not_warned true "$(ldd "$tmp/null" | awk '/libc\.so/ { print $3 }')"
if [ "$(id -u)" -eq 0 ]; then
	raised
	check "a set-user-ID program" warned "raised runs with other rights" "$tmp/raised"
	cp /bin/true "$tmp/own" && chmod u+s "$tmp/own"
	check "a set-user-ID program of one's own" not_warned "$tmp/own"
	if capable && "${as_nobody[@]}" test -x "$softhca"; then
		check "a program with capabilities that can't be read" warned_nobody "capable runs with other rights" "$tmp/capable"
	else
		echo "ok a program with capabilities # SKIP the file system has none, or nobody can't run softhca"
	fi
else
	echo "ok a set-user-ID program # SKIP only root can make one"
	echo "ok a program with capabilities # SKIP only root can make one"
fi
check "random addresses that can't be switched off" addresses_stay_random
check "stat shows the clock" stat_shows
check "ten runs, one hash" repeats 0 10
check "the log of the events" logs
check "a seed repeats" repeats 7 3
check "seeds differ" differ
check "random numbers come from the seed" randoms_repeat
exit $bad
