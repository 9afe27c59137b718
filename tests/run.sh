#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# All tests, or some: tests/run.sh [--build DIR] [GROUP [NAME...]]. See tests/README.md.
set -euo pipefail
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/setup.sh"

all_groups=(lint unit softhca virtual transport fuzz clients mpi programs dist asan tsan)
passed=0 failed=0 skipped=0
skips=() # what was skipped, and why
fails=() # what failed, and the last that it said
names=() # what to run of a group; empty: all
build=   # the build that is tested
log_dir= # logs of the group that runs

usage() {
	cat <<END
Usage: tests/run.sh [--build DIR] [GROUP [NAME...]]
Groups: ${all_groups[*]}; without one, all of them.
NAME runs only what has it in its name. --build tests a build that is there.
Packages of Debian that a group needs are installed by apt-get if you are root; else they are named, and nothing runs.
With TEST_BUDGET=SECONDS in the environment, what has not begun by then is skipped, and said to be.
END
}

wanted() {
	local n

	[ ${#names[@]} -gt 0 ] || return 0
	for n in "${names[@]}"; do
		case $1 in *"$n"*) return 0 ;; esac
	done
	return 1
}

# sum PATTERN FILE: the sum of the first numbers in lines that match.
sum() {
	{ grep -aE "$1" "$2" || true; } | sed 's/^[^0-9]*\([0-9][0-9]*\).*/\1/' | awk '{ n += $1 } END { print n + 0 }'
}

count() {
	grep -acE "$1" "$2" || true
}

# Adds what a program printed (cmocka's summary, or lines "ok NAME" and "not ok NAME") to the totals.
# tally LABEL LOG STATUS: sets ok, bad and skip.
tally() {
	local label=$1 log=$2 status=$3 line

	ok=$(($(sum '^\[  PASSED  \] [0-9]+ test' "$log") + $(count '^ok ' "$log") - $(count '^ok .*# SKIP' "$log")))
	bad=$(($(sum '^\[  FAILED  \] [0-9]+ test' "$log") + $(count '^not ok ' "$log")))
	skip=$(($(sum '^\[  SKIPPED \] [0-9]+ test' "$log") + $(count '^ok .*# SKIP' "$log")))
	# A program that died before its summary: what it had passed counts.
	[ $((ok + bad + skip)) -gt 0 ] || ok=$(count '^\[       OK \] ' "$log")
	if [ "$bad" -eq 0 ] && { [ "$status" -ne 0 ] || [ $((ok + skip)) -eq 0 ]; }; then
		bad=1
	fi
	while IFS= read -r line; do
		skips+=("$label: $line")
	done < <(awk '/^ok .* # SKIP/ { sub(/^ok /, ""); sub(/ # SKIP */, ": "); print }
		/^\[  SKIPPED \] [^0-9]/ { sub(/^\[  SKIPPED \] /, ""); if (!seen[$0]++) print $0 ": " reason }
		{ reason = /^skipped: / ? substr($0, 10) : "no reason given" }' "$log")
}

# in_time LABEL: is there time left for it? If not, it is skipped.
in_time() {
	[ "$SECONDS" -ge "${TEST_BUDGET:-$((SECONDS + 1))}" ] || return 0
	printf '%-72s skip: no time left\n' "$1"
	skipped=$((skipped + 1))
	skips+=("$1: the $TEST_BUDGET s of TEST_BUDGET were over")
	return 1
}

# run LABEL SECONDS COMMAND...: one program with its tests.
run() {
	local label=$1 limit=$2 log status=0 ok bad skip start=$EPOCHREALTIME
	shift 2
	in_time "$label" || return 0
	log=$log_dir/$(printf %s "$label" | tr -c 'A-Za-z0-9.=-' _ | cut -c1-200).log

	printf '%-72s ' "$label"
	timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null || status=$?
	tally "$label" "$log" "$status"
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
	if [ "$bad" -eq 0 ]; then
		printf 'ok   %4d' "$ok"
	else
		printf 'FAIL %4d' "$bad"
	fi
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf " %7.1f s\n", b - a }'
	[ "$bad" -gt 0 ] || return 0
	case $status in
	0) ;;
	124 | 137) echo "    it took longer than $limit s and was ended" ;;
	*) echo "    exit status $status" ;;
	esac
	echo "    \$ $*"
	tail -n 80 "$log" | sed 's/^/    | /'
	fails+=("$label")
	mapfile -t -O ${#fails[@]} fails < <(tail -n 20 "$log" | cut -c1-200 | sed 's/^/    | /')
}

# pass_or_fail LABEL SECONDS COMMAND...: a command that is a test by its exit status.
pass_or_fail() {
	run "$1" "$2" "$top/tests/as_test" "$1" "${@:3}"
}

# The build tree's environment, as a user has it.
use_build() {
	build=$1
	# shellcheck disable=SC1091 # made by the build
	. "$build/build/env.sh"
}

# make_build DIRECTORY [CONFIGURE OPTION...]
make_build() {
	local dir=$1
	shift
	need_packages "${build_packages[@]}" "${test_packages[@]}"
	echo "Building ${dir#"$top/"}"
	build_tree "$dir" "all check-programs" --enable-werror "$@"
}

# Every group but lint and those with builds of their own tests the plain one.
plain_build() {
	[ -n "$build" ] || { make_build "$top/build" && use_build "$top/build"; }
}

# run_units PREFIX [ENVIRONMENT...]: tests that need no fabric.
run_units() {
	local prefix=$1 src p

	shift
	for src in "$top"/tests/softhca/unit_*.c "$top"/tests/mpi/unit_*.c; do
		p=$(basename "$src" .c)
		wanted "$p" || continue
		run "$prefix$p" 300 env "$@" "$build/tests/$(basename "$(dirname "$src")")/$p"
	done
}

# run_list FOLDER LISTS PREFIX [ENVIRONMENT...]: what tests/FOLDER/LISTS (a pattern) name, under the launcher. A line is
# "[OPTION of softhca run...] -- PROGRAM [ARGUMENT...]".
run_list() {
	local folder=$1 lists=$2 prefix=$3 line options program label
	shift 3
	while IFS= read -r line; do
		case $line in '' | '#'*) continue ;; esac
		case $line in *'-- '*) ;; *) line="-- $line" ;; esac
		options=${line%%-- *}
		# "a --nodes 2 -- b": the separator is the word "--".
		read -ra options <<<"${line%% -- *}"
		case $line in '-- '*) options=() && program=${line#-- } ;; *) program=${line#* -- } ;; esac
		label="$prefix$program${options[*]:+ [${options[*]}]}"
		wanted "$label" || continue
		# shellcheck disable=SC2254 # a pattern
		case $program in ${without-}) continue ;; esac
		read -ra program <<<"$program"
		run "$label" 300 env "$@" softhca run "${options[@]}" -- "$build/tests/$folder/${program[0]}" "${program[@]:1}"
	done < <(cat "$top/tests/$folder"/$lists)
}

group_unit() {
	plain_build
	run_units ""
}

group_softhca() {
	local t

	plain_build
	run_list softhca "*.list" ""
	for t in "$top"/tests/softhca/*.sh; do
		[ -x "$t" ] || continue
		wanted "$(basename "$t")" || continue
		run "$(basename "$t")" 300 env TEST_BUILD="$build" SOFTHCA="$build/src/softhca/softhca" \
			LAUNCHER_CLIENT="$build/tests/softhca/launcher_client" "$t"
	done
}

# Programs of the group softhca, and of others, in virtual time.
group_virtual() {
	# Not the threads that post to full queues for as long as those are full: each try is a turn.
	local clients=$top/tests/clients without='test_threads*'
	local -x SOFTHCA_CLOCK=virtual SOFTHCA_CLOCK_CPU=0 SOFTHCA_CLOCK_TSC=trap
	local -x SOFTHCA_LINK=latency=1us,bandwidth=10GB/s

	need_packages "${client_packages[@]}"
	plain_build
	run_list softhca suite.list "virtual: "
	# shellcheck source=tests/clients/ibverbs-utils.sh
	. "$clients/ibverbs-utils.sh"
	pair ib_send_lat 2 ib_send_lat -n 1000
	pair ib_send_bw 2 ib_send_bw -n 1000
	pair ib_read_lat 2 ib_read_lat -n 1000
}

# What tests/clients/*.sh call.
# alone NAME [OPTION of softhca run...] -- COMMAND...: the command in a fabric of its own.
alone() {
	local name=$1
	shift
	wanted "$name" || return 0
	pass_or_fail "$name" 180 softhca run "$@"
}
# pair NAME NODES PROGRAM...: a server and its client, on the first and on the last virtual node.
pair() {
	local name=$1 nodes=$2
	shift 2
	[ "$nodes" -eq 2 ] || name=$name-on-one-node
	alone "$name" --nodes "$nodes" -- "$clients/pair" $((nodes - 1)) "$@"
}

group_clients() {
	local t clients=$top/tests/clients

	need_packages "${client_packages[@]}"
	plain_build
	for t in "$clients"/*.sh; do
		# shellcheck disable=SC1090 # each of them
		. "$t"
	done
}

# What runs the MPI programs: the module that is under test, by name, so that mpirun fails where it isn't used. PML=ob1 or
# PML=ucx in the environment runs them on another one instead, for reference. (btl/tcp is for processes that are spawned.)
# mpi_module PROTOCOL
mpi_module() {
	case ${PML-tupleq} in
	tupleq) echo --mca pml tupleq --mca pml_tupleq_protocol "$1" ;;
	ob1) echo --mca pml ob1 --mca btl vader,self,tcp --mca btl_vader_eager_limit 8192 --mca btl_vader_single_copy_mechanism none ;;
	ucx)
		echo --mca pml ucx --mca opal_common_ucx_devices any --mca opal_common_ucx_tls any \
			-x UCX_TLS=rc_v,self -x UCX_NET_DEVICES=softhca0:1
		;;
	*) die "PML is tupleq, ob1 or ucx, not $PML" ;;
	esac
}

# mpi_line FOLDER PREFIX PROTOCOLS SOFTHCA-OPTIONS RANKS MPIRUN-OPTIONS PROGRAM [ENVIRONMENT...]: a line of a list. A program in
# tests/mpi is built; one in tests/programs is a script, which is given RANKS, its arguments, "--" and the mpirun to use.
mpi_line() {
	local folder=$1 prefix=$2 protocols=$3 ranks=$5 protocol label softhca options program module mpirun judge=run command
	read -ra softhca <<<"$4"
	read -ra options <<<"$6"
	read -ra program <<<"$7"
	shift 7

	[ "$protocols" != all ] || protocols=tupleq,tupleq-copy,rput,rget
	[ "${PML-tupleq}" = tupleq ] || protocols=$PML
	for protocol in ${protocols//,/ }; do
		label="$prefix$protocol: ${program[*]}, $ranks ranks${softhca[*]:+ [${softhca[*]}]}${options[*]:+ [${options[*]}]}"
		wanted "$label" || continue
		read -ra module <<<"$(mpi_module "$protocol")"
		mpirun=(mpirun --allow-run-as-root --oversubscribe --mca plm isolated --mca mpi_yield_when_idle 1
			-n "$ranks" "${module[@]}" "${options[@]}")
		case $folder/${program[0]} in
		programs/*) command=("$top/tests/programs/${program[0]}" "$ranks" "${program[@]:1}" -- "${mpirun[@]}") ;;
		# A program of another folder is a test by its exit status.
		*/*/*) judge=pass_or_fail command=("${mpirun[@]}" "$build/${program[0]}" "${program[@]:1}") ;;
		*) command=("${mpirun[@]}" "$build/tests/mpi/${program[0]}" "${program[@]:1}") ;;
		esac
		"$judge" "$label" 120 env "$@" softhca run --memlock unlimited "${softhca[@]}" -- "${command[@]}"
	done
}

# run_mpi FOLDER/LIST PREFIX [ENVIRONMENT...]: what the list in tests/ names.
run_mpi() {
	local list=$1 prefix=$2 line f
	shift 2
	while IFS= read -r line; do
		case $line in '' | '#'*) continue ;; esac
		IFS='|' read -ra f <<<"$line"
		mpi_line "${list%/*}" "$prefix" "$(tr -d ' ' <<<"${f[0]}")" "${f[1]}" "$(tr -d ' ' <<<"${f[2]}")" "${f[3]}" "${f[4]}" "$@"
	done <"$top/tests/$list"
}

# run_sims PREFIX RUNS LIMIT ANY [ENVIRONMENT...]: the protocol on a model of the network. ANY is 1 where a case with more
# schedules than LIMIT is no failure.
run_sims() {
	local prefix=$1 runs=$2 limit=$3 any=$4 name
	shift 4
	wanted sim_random && run "${prefix}sim_random" 600 env "$@" "$build/tests/transport/sim_random" --runs "$runs"
	wanted "sim_random --break 1" &&
		run "${prefix}sim_random --break 1" 600 env "$@" "$build/tests/transport/sim_random" --runs "$((runs / 4))" --break 1
	wanted sim_exhaustive &&
		run "${prefix}sim_exhaustive" 600 env "$@" "$build/tests/transport/sim_exhaustive" --limit "$limit" --any "$any"
	for name in unit_handles unit_bounds unit_tags unit_limits unit_deserted unit_device; do
		wanted "$name" && run "$prefix$name" 60 env "$@" "$build/tests/transport/$name"
	done
	return 0
}

group_transport() {
	plain_build
	run_sims "" 50000 100000 0
	wanted mutants && run mutants 900 "$top/tests/transport/mutants.sh"
	wanted mutants_net && run mutants_net 900 env TEST_BUILD="$build" "$top/tests/transport/mutants_net.sh"
	run_list transport "*.list" ""
}

# What was found stays found: the corpora are gone through first. Then a little fuzzing, the same each time; tests/README.md
# says how to fuzz on.
group_fuzz() {
	local out=${build:-$top/build}/fuzz target

	need_packages make libibverbs-dev uthash-dev "${fuzz_packages[@]}"
	echo "Building the fuzz targets"
	logged "$log_dir/make.out" make -C "$top" -f tests/fuzz/Makefile -j"$(nproc)" O="$out" ||
		die "the build of the fuzz targets failed"
	for target in protocol network; do
		wanted "$target corpus" && pass_or_fail "$target corpus" 120 "$top/tests/fuzz/run.sh" "$out" "$target" 0
		wanted "$target fuzzing" &&
			pass_or_fail "$target fuzzing" 300 "$top/tests/fuzz/run.sh" "$out" "$target" 3000
	done
	return 0
}

group_mpi() {
	need_packages "${mpi_packages[@]}"
	plain_build
	run_mpi mpi/suite.list ""
	# What these look for is said by pml/tupleq alone.
	[ "${PML-tupleq}" = tupleq ] || return 0
	wanted limits.sh && run limits.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/limits.sh"
	wanted params.sh && run params.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/params.sh"
	wanted report.sh && run report.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/report.sh"
	wanted allocators.sh && run allocators.sh 600 env TEST_BUILD="$build" "$top/tests/mpi/allocators.sh"
	wanted bench.sh && run bench.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/bench.sh"
	wanted failures.sh && run failures.sh 900 env BUILD="$build" "$top/tests/mpi/failures.sh"
	return 0
}

group_programs() {
	need_packages "${program_packages[@]}"
	plain_build
	run_mpi programs/suite.list ""
}

# The suite with a sanitizer: sanitized NAME CONFIGURE-VALUE RUNTIME VARIABLE=FLAGS MPI-FLAGS. The last ones are for MPI
# programs only, in which Open MPI's own libraries are not instrumented.
# The launcher puts libsofthca first in LD_PRELOAD. That is no harm to a runtime that is listed right behind it, in
# front of the C library, but AddressSanitizer has to be told so. (What gcc guesses of truncation depends on its
# optimiser, and is judged at -O2.)
sanitized() {
	local -x UBSAN_OPTIONS=print_stacktrace=1
	local name=$1 value=$2 preload flags=$4 mpi_flags=$5

	preload=LD_PRELOAD=$(gcc -print-file-name="$3")
	need_packages openmpi-bin openssh-client
	make_build "$top/build/$name" --enable-sanitizer="$value" CFLAGS="-O1 -g -Wno-format-truncation"
	(
		use_build "$top/build/$name"
		run_units "$name: " "$flags"
		run_list softhca "suite*.list" "$name: " "$flags" "$preload"
		# They have one thread, in which there are no races.
		[ "$name" = tsan ] || run_sims "$name: " 2000 200 1 "$flags"
		run_list transport suite.list "$name: " "$flags" "$preload"
		# hwloc reads a list of all PCI devices with a realloc() for each, which takes seconds in each process here.
		run_mpi mpi/sanitized.list "$name: " "$flags$mpi_flags" "$preload" HWLOC_COMPONENTS=-pci
		save_totals
	)
	load_totals
}

# Totals of a subshell.
save_totals() {
	declare -p passed failed skipped skips fails | sed 's/^declare -- //; s/^declare -a //' >"$log_dir/totals"
}
load_totals() {
	# shellcheck disable=SC1091 # written by save_totals
	. "$log_dir/totals"
}

# With UndefinedBehaviorSanitizer in it, too.
group_asan() {
	sanitized asan address,undefined libasan.so ASAN_OPTIONS=verify_asan_link_order=0:abort_on_error=1 :detect_leaks=0
}

# A forked child that opens a device starts an engine thread; ThreadSanitizer has to be told to let it. Suppressions need the
# stack of an access that may be long past: hence the longer history.
group_tsan() {
	sanitized tsan thread libtsan.so TSAN_OPTIONS="halt_on_error=1:atexit_sleep_ms=50:die_after_fork=0:second_deadlock_stack=1:history_size=5" \
		":ignore_noninstrumented_modules=1:suppressions=$top/tests/mpi/tsan.supp"
}

# cppcheck has to see what the macros of uthash are; their variants for other compilers are left out.
cppcheck_all() {
	local folder includes=() undefined=() macro

	for folder in include src/softhca src/transport tests/softhca tests/transport tests/fuzz tests/mpi bench/mpi bench/verbs; do
		includes+=(-I "$folder")
	done
	for macro in NO_DECLTYPE _MSC_VER HASH_DEBUG HASH_BLOOM HASH_EMIT_KEYS; do
		undefined+=("-U$macro")
	done
	pass_or_fail cppcheck 900 cppcheck -q -j "$(nproc)" --error-exitcode=1 --std=c11 \
		--enable=warning,portability,performance --inline-suppr --suppress=missingIncludeSystem \
		--include=/usr/include/uthash.h --include=/usr/include/utlist.h "${undefined[@]}" "${includes[@]}" \
		include src ompi-btl examples tests bench
}

group_lint() {
	local c sh

	need_packages "${lint_packages[@]}" "${build_packages[@]}" "${test_packages[@]}"
	cd "$top"
	mapfile -t c < <(find include src ompi-btl examples tests bench -name '*.[ch]' | sort)
	# Scripts by their name or by their first line.
	mapfile -t sh < <({
		find tests bench -name '*.sh'
		grep -rlE '^#!/bin/(ba)?sh' .ci autogen.sh tests bench
	} | sort -u)
	wanted clang-format && pass_or_fail clang-format 300 clang-format --dry-run -Werror "${c[@]}"
	wanted cppcheck && cppcheck_all
	wanted shellcheck && pass_or_fail shellcheck 300 shellcheck -x -S warning "${sh[@]}"
	wanted pyflakes && pass_or_fail pyflakes 60 pyflakes3 bench/driver tests/programs tests/transport
	wanted unit_mutate && pass_or_fail unit_mutate 60 python3 -B tests/transport/unit_mutate.py
	# Checks that the mutants apply; the transport group checks that their bugs are found.
	wanted mutants && run "mutants apply" 60 python3 tests/transport/mutate.py check src/transport tests/transport/mutants{,_net}
	wanted readme && pass_or_fail readme 60 tests/readme.sh
	wanted versions && pass_or_fail versions 60 tests/versions.sh
	wanted spec && pass_or_fail spec 60 tests/spec.sh
	wanted usage && pass_or_fail usage 60 tests/usage.sh
	wanted mandoc && pass_or_fail mandoc 60 mandoc -T lint -W warning src/softhca/man/softhca.7
	return 0
}

# What people do with a release.
group_dist() {
	plain_build
	need_packages "${dist_packages[@]}"
	wanted manual && pass_or_fail manual 60 "$top/tests/manual.sh" "$build"
	wanted packages && pass_or_fail packages 600 "$top/tests/packages.sh" "$build"
	wanted install && pass_or_fail install 300 "$top/tests/install.sh" "$build"
	wanted clang && need_packages clang && pass_or_fail clang 900 "$top/tests/clang.sh"
	wanted distcheck && pass_or_fail distcheck 900 make -C "$build" -j "$(nproc)" distcheck
	return 0
}

summary() {
	local s

	if [ ${#skips[@]} -gt 0 ]; then
		echo "Skipped:"
		for s in "${skips[@]}"; do
			echo "    $s"
		done
	fi
	# Again, as it is far up in a long log.
	if [ ${#fails[@]} -gt 0 ]; then
		echo "Failed:"
		for s in "${fails[@]}"; do
			echo "    $s"
		done
	fi
	if [ "$skipped" -gt 0 ]; then
		echo "$passed passed, $failed failed, $skipped skipped"
	else
		echo "$passed passed, $failed failed"
	fi
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

main() {
	local groups=("${all_groups[@]}") before group

	if [ "${1-}" = --build ]; then
		[ -n "${2-}" ] || die "--build wants a directory that was built"
		[ -f "$2/build/env.sh" ] || die "$2 is no build of this project: there is no build/env.sh in it (run make there)"
		use_build "$(cd "$2" && pwd)"
		shift 2
	fi
	# "make check" gives several groups; names follow the only one.
	if [ $# -gt 0 ]; then
		case $1 in -h | --help) usage && exit 0 ;; esac
		groups=()
		while [ $# -gt 0 ] && [[ " ${all_groups[*]} " == *" $1 "* ]]; do
			groups+=("$1")
			shift
		done
		case ${1-} in -*) die "there is no option $1 here; there are --help, and --build DIR before the groups" ;; esac
		[ ${#groups[@]} -gt 0 ] || die "there is no group $1; there are: ${all_groups[*]}"
		names=("$@")
	fi
	for group in "${groups[@]}"; do
		log_dir=${build:-$top/build}/logs/$group
		mkdir -p "$log_dir"
		before=$((passed + failed + skipped))
		echo "== $group"
		! in_time "all of $group" || "group_$group"
		if [ $((passed + failed + skipped)) -eq "$before" ]; then
			echo "$group: nothing of that name ran"
			failed=$((failed + 1))
		fi
	done
	summary
}

main "$@"
