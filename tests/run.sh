#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh [--build DIR] [--quick | --long] [--device NAME] [--hostfile FILE] [GROUP [NAME...]] - runs all tests, or some. See tests/README.md.
set -euo pipefail
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/setup.sh"
# shellcheck source=tests/tally.sh
. "$top/tests/tally.sh"

all_groups=(lint unit softhca check adapter rdmacm virtual seeds transport portals libfabric fuzz clients mpi programs dist aarch64 asan tsan debian13)
names=() # the tests of a group to run; empty: all
build=   # the build that is tested
long=    # 1: also the tests that take too long for each day
quick=   # 1: only the tests of quick.list
named=() # the groups that the user named
log_dir= # the logs of the running group
device=   # --device: the RDMA device of group adapter; empty: softhca0
hostfile= # --hostfile: its hosts; empty: this one alone

# Seconds on two idle cores: for each group, for the tests that --long adds to it, and for the build that most groups share.
declare -A seconds=() long_seconds=()
build_seconds=120
shared_build=$build_seconds # of them, what this run takes

declare -A packages_of=() # the packages of each group besides those of the shared build

# needs GROUP PACKAGE...
needs() {
	local group=$1
	shift
	packages_of[$group]="$*"
}

# takes GROUP SECONDS [SECONDS THAT --long ADDS]
takes() {
	seconds[$1]=$2
	long_seconds[$1]=${3-0}
}

for group_file in "$top"/tests/groups/*.sh; do
	# shellcheck disable=SC1090 # each of them
	. "$group_file"
done

usage() {
	cat <<END
Usage: tests/run.sh [--build DIR] [--long] [GROUP [NAME...]]
       tests/run.sh [--build DIR] --quick
       tests/run.sh [--build DIR] --device NAME [--hostfile FILE] adapter [NAME...]
Groups: ${all_groups[*]}; without one, all of them.
NAME runs only tests that have it in their names. --build tests an existing build.
--quick runs the tests of tests/quick.list, which take three minutes.
--device runs the tests of group adapter on that RDMA device, --hostfile on each host of FILE and between them.
--long also runs the tests that take too long for each day, which otherwise run only by NAME. A run lists at its end what it left out.
All groups take $(unset TEST_BUDGET && minutes "$(long='' estimate "${all_groups[@]}")") minutes on two cores, $(unset TEST_BUDGET && minutes "$(long=1 estimate "${all_groups[@]}")") with --long.
If you are root, apt-get installs the packages of Debian that a group needs. If not, they are named, and nothing runs.
--words only checks that GROUP is right, and runs nothing.
With TEST_BUDGET=SECONDS in the environment, tests that have not begun by then are skipped and listed.
END
}

# use_build DIRECTORY: sets the build that is tested, and its environment as a user has it.
use_build() {
	build=$1
	# shellcheck disable=SC1091 # made by the build
	. "$build/build/env.sh"
}

# make_build DIRECTORY [OPTION of configure...]
make_build() {
	local dir=$1
	shift
	echo "Building ${dir#"$top/"}"
	build_tree "$dir" "all check-programs" --enable-werror "$@"
}

# Makes the plain build unless there is one. All groups test it except lint and those with builds of their own.
plain_build() {
	[ -n "$build" ] || { make_build "$top/build" && use_build "$top/build"; }
}

# is_long GROUP: true if the group's long tests run: with --long; and, of a group that has no others, if the user named it or
# TEST_BUDGET bounds the run.
is_long() {
	[ -n "$long" ] || { [ "${seconds[$1]}" -eq 0 ] && [[ -n ${TEST_BUDGET-} || " ${named[*]} " == *" $1 "* ]]; }
}

# expected GROUP: the seconds that the group takes.
expected() {
	local sum=${seconds[$1]}

	! is_long "$1" || sum=$((sum + long_seconds[$1]))
	echo "$sum"
}

# build_time: the seconds that the shared build takes: all of them, unless there is a build and no source is newer.
build_time() {
	local changed
	if [ -n "$build" ]; then
		echo 0
	elif [ ! -e "$top/build/build/env.sh" ] || [ ! -e "$top/build/make.out" ]; then
		echo "$build_seconds"
	else
		changed=$(cd "$top" && find configure.ac Makefile.am m4 include src ompi-btl tests bench -type f -newer build/make.out \
			\( -name '*.[ch]' -o -name '*.def' -o -name '*.inc' -o -name '*.m4' -o -name '*.a[cm]' -o -name '*.map' \) | head -n 1)
		[ -n "$changed" ] && echo "$build_seconds" || echo 10
	fi
}

# estimate GROUP...: the seconds that all these groups take, with the build that they share.
estimate() {
	local group sum=0

	[ -n "$build" ] || [ "$*" = lint ] || sum=$shared_build
	for group; do
		sum=$((sum + $(expected "$group")))
	done
	[ -z "${TEST_BUDGET-}" ] || [ "$sum" -le "$TEST_BUDGET" ] || sum=$TEST_BUDGET
	echo "$sum"
}

# minutes SECONDS: rounded up.
minutes() {
	echo $((($1 + 59) / 60))
}

# need_all GROUP...: the packages of all groups at once, before anything runs.
need_all() {
	local group packages=()

	[ -n "$build" ] || [ "$*" = lint ] || packages=("${build_packages[@]}" "${test_packages[@]}")
	for group; do
		# shellcheck disable=SC2206 # a list of words
		packages+=(${packages_of[$group]-})
	done
	need_packages "${packages[@]}"
}

run_group() {
	local group=$1 before=$((passed + failed + skipped + ${#left_out[@]})) start=$SECONDS long=$long before_build=$build
	local wanted_seconds with=""

	! is_long "$group" || long=1
	log_dir=${build:-$top/build}/logs/$group
	mkdir -p "$log_dir"
	echo "== $group"
	side_by_side
	! in_time "all of $group" || "group_$group"
	in_turn
	if [ $((passed + failed + skipped + ${#left_out[@]})) -eq "$before" ]; then
		echo "$group: nothing of that name ran"
		failed=$((failed + 1))
	fi
	[ ${#names[@]} -eq 0 ] || return 0
	wanted_seconds=$(expected "$group")
	# The first group that needs the shared build makes it.
	[ "$before_build" = "$build" ] || wanted_seconds=$((wanted_seconds + shared_build)) with=" with the build"
	echo "$group took $((SECONDS - start)) s; $wanted_seconds s were expected$with"
}

# run_quick: runs the tests of quick.list.
run_quick() {
	local group line name

	while IFS='|' read -r group line; do
		group=${group// /}
		case $group in '' | '#'*) continue ;; esac
		names=()
		while IFS= read -r name; do
			[ -z "$name" ] || names+=("$name")
		done < <(tr '|' '\n' <<<"$line" | sed 's/^ *//; s/ *$//')
		run_group "$group"
	done <"$top/tests/quick.list"
}

main() {
	local groups=() group words_only=

	while [ $# -gt 0 ]; do
		case $1 in
		-h | --help) usage && exit 0 ;;
		--long) long=1 && shift ;;
		--quick) quick=1 && shift ;;
		--words) words_only=1 && shift ;;
		--build)
			[ -n "${2-}" ] || die "--build wants the directory of a build"
			[ -f "$2/build/env.sh" ] || die "$2 is no build of this project: it has no build/env.sh (run make there)"
			use_build "$(cd "$2" && pwd)"
			shift 2
			;;
		--device | --hostfile)
			[ -n "${2-}" ] || die "$1 wants the name of a ${1#--}"
			[ "$1" = --device ] && device=$2 || hostfile=$2
			shift 2
			;;
		*) break ;;
		esac
	done
	# There may be several groups, as in "make check", but names only after a single one.
	while [ $# -gt 0 ] && [[ " ${all_groups[*]} " == *" $1 "* ]]; do
		groups+=("$1")
		shift
	done
	case ${1-} in -*) die "there is no option $1 here; there are --help, and --build DIR, --quick and --long before the groups" ;; esac
	[ $# -eq 0 ] || [ ${#groups[@]} -gt 0 ] || die "there is no group $1; there are: ${all_groups[*]}"
	if [ -n "$quick" ]; then
		[ ${#groups[@]} -eq 0 ] && [ -z "$long" ] || die "--quick chooses the tests itself: give it no group and no --long"
		mapfile -t groups < <(sed -nE 's/^([a-z0-9]+).*/\1/p' "$top/tests/quick.list" | uniq)
	fi
	[ -z "$device$hostfile" ] || [ "${groups[*]}" = adapter ] || die "--device and --hostfile are for group adapter alone"
	[ -z "$hostfile" ] || [ -n "$(hosts_of "$hostfile" 2>/dev/null)" ] || die "$hostfile names no host"
	named=("${groups[@]}")
	[ ${#groups[@]} -gt 0 ] || groups=("${all_groups[@]}")
	names=("$@")
	[ -z "$words_only" ] || exit 0
	need_all "${groups[@]}"
	shared_build=$(build_time)
	if [ -n "$quick" ]; then
		run_quick
		summary
		return
	fi
	[ ${#names[@]} -gt 0 ] || echo "This takes about $(minutes "$(estimate "${groups[@]}")") minutes on two cores."
	for group in "${groups[@]}"; do
		run_group "$group"
	done
	summary
}

main "$@"
