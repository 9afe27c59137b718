#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# test_launcher.sh - the launcher from a user's view: exit statuses, signals, leftovers however the launcher ends, and the output of
# list, stat, reset and options. SOFTHCA is the program, LAUNCHER_CLIENT the built launcher_client.c. The test looks only at its own
# fabrics, because others may run beside it.

# Job control, so that background jobs don't ignore SIGINT and SIGQUIT.
set -m
SOFTHCA=${SOFTHCA:?set it to the path of softhca}
CLIENT=${LAUNCHER_CLIENT:?set it to the path of launcher_client}
unset "${!SOFTHCA_@}"
export SOFTHCA=$SOFTHCA CLIENT

tmp=$(mktemp -d)
root=/dev/shm/softhca-$(id -u)
export HOME=$tmp XDG_CONFIG_HOME=$tmp/config
export SOFTHCA_CONFIG=$tmp/softhca.conf
: > "$SOFTHCA_CONFIG"
# A process that reads from this waits until the test ends.
mkfifo "$tmp/hold"
exec 9<> "$tmp/hold"
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
trap 'kill -9 $(jobs -p) 2>/dev/null; rm -rf "$tmp"' EXIT

not() { ! "$@"; }
gone() { [ ! -e "$1" ]; }
ended() { [ ! -e "/proc/$1" ] || state "$1" Z; }
state() { grep -q "^State:.$2" "/proc/$1/status" 2>/dev/null; }
says() { grep -q -- "$2" "$1"; }
# status N COMMAND...: true if the command exits with N. Its output is in $tmp/out and $tmp/err.
status() {
	local want=$1 got
	shift
	"$@" > "$tmp/out" 2> "$tmp/err"
	got=$?
	[ "$got" = "$want" ] || { echo "# status $got, not $want: $*"; return 1; }
}
one_sentence() { [ "$(wc -l < "$tmp/err")" = 1 ] && grep -q '\.$' "$tmp/err"; }

# start COMMAND [BEFORE]: starts "softhca run" in the background. Returns when COMMAND runs, after BEFORE has been done. Sets run, dir
# and cmd (its pid). $limit is the soft limit of open files, if that is set.
start() {
	rm -f "$tmp/started"
	bash -c 'ulimit -Sn "$0" && exec "$@"' "${limit:-$(ulimit -Sn)}" "$SOFTHCA" run -- bash -c "${2-}"'echo "$SOFTHCA_FABRIC $$" > "$0.new"; mv "$0.new" "$0"; '"$1" \
		"$tmp/started" > "$tmp/bg.out" 2> "$tmp/bg.err" 9>&- &
	run=$!
	within test -e "$tmp/started" || return 1
	read -r dir cmd < "$tmp/started"
}
child_named() {
	local c
	for c in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
		[ "$(cat "/proc/$c/comm" 2>/dev/null)" = "$2" ] && echo "$c" && return 0
	done
	return 1
}
monitor_of() { child_named "$1" softhca-monitor; }
new_monitor() { local m; m=$(monitor_of "$1") && [ "$m" != "$2" ]; }
status_of() { wait "$1" 2>/dev/null; [ $? = "$2" ]; }

# kill_both: kills the launcher and its monitor. Returns when they and the command have ended, and their locks are released.
kill_both() {
	local monitor process

	monitor=$(monitor_of "$run")
	kill -STOP "$run"
	kill -KILL "$monitor" "$run"
	for process in "$cmd" "$monitor" "$run"; do
		within ended "$process"
	done
}

exit_statuses() {
	check "status 0" status 0 "$SOFTHCA" run -- true
	check "status 7" status 7 "$SOFTHCA" run -- sh -c 'exit 7'
	check "without --" status 3 "$SOFTHCA" run --nodes 2 sh -c 'exit $2' x --nodes 3
	check "a command that isn't there" status 127 "$SOFTHCA" run -- "$tmp/none"
	check "its message" one_sentence
	check "a command that isn't executable" status 126 "$SOFTHCA" run -- /etc/passwd
	check "killed by SIGKILL" status 137 "$SOFTHCA" run -- sh -c 'kill -KILL $$'
	check "killed by SIGSEGV" status 139 "$SOFTHCA" run -- sh -c 'kill -SEGV $$'
	check "its message" says "$tmp/err" "^softhca: sh was ended by signal 11 (.*).$"
	check "ended by SIGTERM" status 143 "$SOFTHCA" run -- sh -c 'kill -TERM $$'
	check "without a message" test ! -s "$tmp/err"
	check "SIGCHLD ignored" status 5 bash -c 'trap "" CHLD; exec "$0" run -- sh -c "exit 5"' "$SOFTHCA"
	check "standard input" test "$(echo hello | "$SOFTHCA" run -- cat)" = hello
}

usage_errors() {
	check "no command" status 2 "$SOFTHCA"
	check "unknown command" status 2 "$SOFTHCA" bogus
	check "its message" one_sentence
	check "unknown option" status 2 "$SOFTHCA" run --bogus -- true
	check "nothing to run" status 2 "$SOFTHCA" run --nodes 2
	check "bad value" status 2 "$SOFTHCA" run --nodes 65 -- true
	check "its message" one_sentence
	check "it names the option" says "$tmp/err" '^softhca: --nodes: "65"'
	check "bad value in the environment" status 2 env SOFTHCA_NODES=x "$SOFTHCA" run -- true
	check "it names the variable" says "$tmp/err" SOFTHCA_NODES
	printf '\nnodes = x\n' > "$tmp/bad.conf"
	check "bad value in a file" status 2 "$SOFTHCA" run --config "$tmp/bad.conf" -- true
	check "it names file and line" says "$tmp/err" "$tmp/bad.conf:2: "
	check "a file that isn't there" status 2 "$SOFTHCA" run --config "$tmp/none" -- true
	check "options that don't go together" status 2 "$SOFTHCA" run --nodes 64 --devices 2 -- true
	check "no library" status 125 env SOFTHCA_LIBRARY="$tmp/none" "$SOFTHCA" run -- true
	check "its message" one_sentence
	check "a folder instead of the library" status 125 env SOFTHCA_LIBRARY="$tmp" "$SOFTHCA" run -- true
	check "its message" one_sentence
	check "file size limit" status 125 bash -c 'ulimit -f 1000; exec "$0" run -- true' "$SOFTHCA"
	check "its message" one_sentence
	check "no such fabric" status 1 "$SOFTHCA" stat nonexistent
	check "its message" one_sentence
	check "run --help has every option" test "$("$SOFTHCA" run --help | grep -c '^  *--[a-z]')" -ge \
		"$("$SOFTHCA" options --json | grep -c '"name"')"
	check "--version" status 0 "$SOFTHCA" --version
	check "help of a command" status 0 "$SOFTHCA" help stat
}

surroundings() {
	local d lib
	status 0 "$SOFTHCA" run -- sh -c 'stat -c %a "$SOFTHCA_FABRIC" "$SOFTHCA_FABRIC/seg"; echo "$SOFTHCA_FABRIC"
		echo "$LD_PRELOAD"'
	check "directory is private" test "$(sed -n 1p "$tmp/out")" = 700
	check "shared file is private" test "$(sed -n 2p "$tmp/out")" = 600
	d=$(sed -n 3p "$tmp/out")
	check "fabric is below its root" test "${d%/*}" = "$root"
	check "fabric is removed" gone "$d"
	lib=$(sed -n 4p "$tmp/out")
	check "library is preloaded" test -r "$lib"
	check "a path of Open MPI's components that is set stays" test \
		"$(OMPI_MCA_mca_base_component_path=/mine "$SOFTHCA" run -- sh -c 'echo "$OMPI_MCA_mca_base_component_path"')" = /mine
	check "a path of libfabric's providers that is set stays" test \
		"$(FI_PROVIDER_PATH=/mine "$SOFTHCA" run -- sh -c 'echo "$FI_PROVIDER_PATH"')" = /mine
	check "LD_PRELOAD keeps what was there" test \
		"$(LD_PRELOAD=libm.so.6 "$SOFTHCA" run -- sh -c 'echo "$LD_PRELOAD"')" = "$lib:libm.so.6"
	check "no descriptor leaks into the command" test \
		"$("$SOFTHCA" run -- sh -c 'ls /proc/self/fd' | wc -l)" = "$(sh -c 'ls /proc/self/fd' | wc -l)"
}

precedence() {
	local o="$SOFTHCA options"
	printf 'nodes = 2\ndevices = 2\nxrc = no\n' > "$tmp/p.conf"
	export SOFTHCA_NODES=3 SOFTHCA_DEVICES=3
	$o --config "$tmp/p.conf" --nodes 4 > "$tmp/out"
	check "command line first" grep -Eq '^nodes +4 +command line' "$tmp/out"
	check "environment second" grep -Eq '^devices +3 +environment' "$tmp/out"
	check "file third" grep -Eq '^xrc +no +file' "$tmp/out"
	check "default last" grep -Eq '^atomics +yes +default' "$tmp/out"
	unset SOFTHCA_NODES SOFTHCA_DEVICES
	check "SOFTHCA_CONFIG" test "$(SOFTHCA_CONFIG=$tmp/p.conf $o | grep -Ec ' file ')" = 3
	mkdir -p "$XDG_CONFIG_HOME"
	cp "$tmp/p.conf" "$XDG_CONFIG_HOME/softhca.conf"
	check "file in the home directory" test "$(env -u SOFTHCA_CONFIG $o | grep -Ec ' file ')" = 3
	check "the fabric has the values" test "$("$SOFTHCA" run --nodes 5 -- "$SOFTHCA" stat --json |
		sed -n 's/^  "nodes": \(.*\),/\1/p')" = 5
}

signals() {
	local s n
	for s in INT TERM HUP QUIT USR1 USR2; do
		start "while :; do sleep 0.05; done" "trap 'exit 42' $s; "
		kill -$s "$run"
		check "SIG$s is passed on" status_of "$run" 42
		check "fabric is removed after SIG$s" gone "$dir"
	done
	start 'exec sleep 60'
	kill -TERM "$run"
	check "SIGTERM ends the command" status_of "$run" 143
	check "fabric is removed after SIGTERM" gone "$dir"

	timeout 1 "$SOFTHCA" run -- bash -c 'trap "echo x" TERM; for i in {1..40}; do sleep 0.05; done' > "$tmp/out" 2>/dev/null
	check "a signal to the launcher and its group comes once" test "$(grep -c x "$tmp/out")" = 1

	start 'exec sleep 60'
	kill -TSTP "$run"
	check "SIGTSTP stops the command" within state "$cmd" T
	check "SIGTSTP stops the launcher" within state "$run" T
	kill -CONT "$run"
	check "SIGCONT continues the command" within state "$cmd" S
	check "SIGCONT continues the launcher" within state "$run" S
	kill -STOP "$cmd"
	within state "$cmd" T
	check "a stop of the command alone leaves the launcher" state "$run" S
	kill -CONT "$cmd"
	kill -TERM "$run"
	check "it still ends" status_of "$run" 143

	start '"$CLIENT" < "${0%/*}/hold" & exec sleep 60'
	within says "$tmp/bg.out" attached
	n=$(monitor_of "$run")
	kill -INT "$n"
	kill -TERM "$n"
	kill -HUP "$n"
	kill -KILL "$(sed -n 's/attached //p' "$tmp/bg.out")"
	check "the monitor ignores signals" within no_procs "$dir"
	check "and goes on" test "$(monitor_of "$run")" = "$n"
	kill -TERM "$run"
	wait "$run" 2>/dev/null
	check "the monitor ends with it" ended "$n"
}

deaths() {
	local m c
	start 'exec sleep 60'
	m=$(monitor_of "$run")
	kill -KILL "$run"
	check "launcher killed: the command dies" within ended "$cmd"
	check "launcher killed: the fabric goes" within gone "$dir"
	check "launcher killed: the monitor ends" within ended "$m"

	# The monitor raises the soft limit of open files, without which it couldn't wait for anything.
	limit=200
	start 'exec sleep 60'
	limit=
	m=$(monitor_of "$run")
	kill -KILL "$run"
	check "few open files, launcher killed: the fabric goes" within gone "$dir"
	check "few open files, launcher killed: the monitor ends" within ended "$m"
	check "too few open files: refused" status 125 bash -c 'ulimit -n 200 && "$SOFTHCA" run -- true'
	check "too few open files: one sentence" one_sentence

	start '"$CLIENT" < "${0%/*}/hold" & exec sleep 60'
	within says "$tmp/bg.out" attached
	c=$(sed -n 's/attached //p' "$tmp/bg.out")
	m=$(monitor_of "$run")
	kill -KILL "$m"
	check "monitor killed: there is another" within new_monitor "$run" "$m"
	kill -KILL "$c"
	check "monitor killed: the dead are still reaped" within no_procs "$dir"
	kill -TERM "$run"
	check "monitor killed: the status is right" status_of "$run" 143
	check "monitor killed: the fabric goes" gone "$dir"

	start 'exec sleep 60'
	m=$(monitor_of "$run")
	kill -STOP "$m"
	kill -TERM "$run"
	check "monitor stopped: the launcher ends" within ended "$run"
	check "monitor stopped: the fabric goes" gone "$dir"

	start 'exec sleep 60'
	kill_both
	check "both killed: the fabric is left" test -d "$dir"
	"$SOFTHCA" list > "$tmp/out"
	check "both killed: it isn't listed" not says "$tmp/out" "${dir##*/}"
	# Another program that is started now may do that at the same time.
	check "both killed: list removes it" within gone "$dir"

	start 'exec sleep 60'
	kill_both
	"$SOFTHCA" run -- true
	check "both killed: the next run removes it" within gone "$dir"
}

no_procs() { "$SOFTHCA" stat --json "${1##*/}" | grep -q '"procs": \[\]'; }

# unwatched: the monitor can't watch. The command ends when the launcher has said so.
unwatched() {
	status 0 timeout 20 "${CLIENT%/*}/forbidden" "$SOFTHCA" run -- sh -c 'until grep -q monitor "$0"; do sleep 0.01; done' "$tmp/err"
	check "a monitor that can't watch" test $? = 0
	check "its message" says "$tmp/err" "monitor can't watch its processes (Too many open files in system), so the fabric has ended\\.$"
}

orphans() {
	local m c
	start '(exec setsid "$CLIENT" < "${0%/*}/hold") & exec sleep 60'
	within says "$tmp/bg.out" attached
	c=$(sed -n 's/attached //p' "$tmp/bg.out")
	kill_both
	"$SOFTHCA" list > "$tmp/out"
	check "a fabric with a process left is orphaned" grep -Eq "^${dir##*/} .* orphaned " "$tmp/out"
	check "and stays" test -d "$dir"
	kill -KILL "$c"
	within ended "$c"
	"$SOFTHCA" list > /dev/null
	check "it goes with that process" gone "$dir"

	start '(exec setsid "$CLIENT" < "${0%/*}/hold") & while ! grep -q attached "${0%/*}/bg.out"; do sleep 0.05; done'
	check "a daemon doesn't keep the launcher" status_of "$run" 0
	c=$(sed -n 's/attached //p' "$tmp/bg.out")
	check "the fabric goes" gone "$dir"
	check "the daemon isn't killed" not ended "$c"
	kill -KILL "$c"

	start '("$CLIENT" keep < /dev/null &) ; exec sleep 60'
	within says "$tmp/bg.out" attached
	check "a process that ends without detaching is reaped" within no_procs "$dir"
	kill -TERM "$run"
	wait "$run" 2>/dev/null

	bash -c 'sleep 0.2 & exec "$0" run -- sh -c "sleep 1; ! grep -l \"^State:.Z\" /proc/\$PPID/task/*/children; \
		for c in \$(cat /proc/\$PPID/task/\$PPID/children); do grep -q \"^State:.Z\" /proc/\$c/status && exit 9; done; exit 0"' \
		"$SOFTHCA"
	check "inherited children leave no zombie" test $? = 0
}

nesting() {
	local outer inner inner_gone once alive
	cat > "$tmp/nest.sh" <<'NEST'
echo "$SOFTHCA_FABRIC"
"$SOFTHCA" run -- sh -c 'echo "$SOFTHCA_FABRIC"; echo "$LD_PRELOAD"' > "$0.in"
cat "$0.in"
[ -e "$(sed -n 1p "$0.in")" ] && echo left || echo gone
[ -d "$SOFTHCA_FABRIC" ] && echo alive || echo lost
NEST
	{ read -r outer; read -r inner; read -r once; read -r inner_gone; read -r alive; } < <(
		"$SOFTHCA" run -- bash "$tmp/nest.sh")
	check "nested fabrics are two" test -n "$inner" -a "$outer" != "$inner"
	check "the library is preloaded once" test "$(grep -o libsofthca <<< "$once" | wc -l)" = 1
	check "the inner one goes first" test "$inner_gone" = gone
	check "the outer one stays" test "$alive" = alive
	check "and goes" within gone "$outer"

	local i pids=()
	for i in 1 2 3 4 5 6 7 8; do
		"$SOFTHCA" run -- sh -c 'echo "$SOFTHCA_FABRIC"; exit '$i > "$tmp/c.$i" &
		pids+=($!)
	done
	alive=yes
	for i in 1 2 3 4 5 6 7 8; do
		status_of "${pids[i - 1]}" $i || alive=no
	done
	check "concurrent runs return their own statuses" test $alive = yes
	check "concurrent runs have fabrics of their own" test "$(cat "$tmp"/c.* | sort -u | wc -l)" = 8
	alive=no
	while read -r outer; do
		gone "$outer" || alive=yes
	done < <(cat "$tmp"/c.*)
	check "concurrent runs leave nothing" test $alive = no
}

reports() {
	local a name c
	start '"$CLIENT" < "${0%/*}/hold" & exec sleep 60'
	a=$run
	name=${dir##*/}
	within says "$tmp/bg.out" attached
	c=$(sed -n 's/attached //p' "$tmp/bg.out")
	"$SOFTHCA" list > "$tmp/out"
	check "list shows it" grep -Eq "^$name +$run +running +1 +1 +[0-9]+s +bash" "$tmp/out"
	"$SOFTHCA" list --json > "$tmp/out"
	check "list --json shows it" says "$tmp/out" "\"name\": \"$name\""
	"$SOFTHCA" stat "$name" > "$tmp/out"
	for k in "Queue pairs" "Shared receive queues" "Completion queues" "Memory regions" "XRC domains" Counters; do
		check "stat shows $k" says "$tmp/out" "^$k"
	done
	check "stat shows owners" grep -Eq "0x[0-9a-f]+ .* $c +[a-z]" "$tmp/out"
	check "stat by the launcher's pid" status 0 "$SOFTHCA" stat "$a"
	check "stat by a process's pid" status 0 "$SOFTHCA" stat "$c"
	"$SOFTHCA" stat --json --counters "$name" > "$tmp/out"
	check "stat --json has counters" says "$tmp/out" '"sends": 5'
	check "stat --counters has no objects" not says "$tmp/out" '"qps"'
	"$SOFTHCA" stat --json --objects "$name" > "$tmp/out"
	check "stat --objects has objects" says "$tmp/out" '"qps"'
	check "stat --objects has no counters" not says "$tmp/out" '"counters"'
	SOFTHCA_FABRIC=$dir "$SOFTHCA" stat > "$tmp/out"
	check "stat inside a fabric takes that" says "$tmp/out" "^Fabric $name"
	"$SOFTHCA" stat --watch=0.05 --json --counters "$name" > "$tmp/watch" &
	within says "$tmp/watch" '"rates"'
	check "stat --watch has rates" says "$tmp/watch" '"rates":{"tx_packets":0.0'
	"$SOFTHCA" reset "$name"
	"$SOFTHCA" stat --json --counters "$name" > "$tmp/out"
	check "reset" says "$tmp/out" '"sends": 0'
	local watch=$!
	start 'exec sleep 60'
	check "several fabrics: one must be named" status 1 "$SOFTHCA" stat
	check "the message names them" grep -q "$name" "$tmp/err"
	kill -TERM "$run" "$a"
	wait "$run" "$a" 2>/dev/null
	check "stat --watch ends with the fabric" within ended "$watch"
	check "options as a manual page" test "$("$SOFTHCA" options --man | grep -c '^\.It ')" = \
		"$("$SOFTHCA" options --json | grep -c '"name"')"
}

for t in exit_statuses usage_errors surroundings precedence signals deaths unwatched orphans nesting reports; do
	echo "# $t"
	$t
done 2> "$tmp/log"
exit $bad
