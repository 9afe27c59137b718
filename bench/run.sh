#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Benchmarks: bench/run.sh [overlap|latency|bandwidth|rate|depth|memory|halo|sp|patterns|barrier|verbs|picture|all] [OPTION...]. Sets up
# and builds, then runs that part; without a name the main job, which is overlap and latency. Options go to the parts: see README.md,
# or bench/run.sh PART --help.
# Packages of Debian that it needs are installed by apt-get if you are root; else they are named, and nothing runs.
set -euo pipefail
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../tests/setup.sh"

# The hosts of a hostfile have adapters of their own.
cluster=
case " $* " in *" --hostfile"[\ =]*) cluster=1 ;; esac

usage() {
	sed -n '3,/^set/{/^#/s/^# //p}' "$0"
	echo "All parts together take --quick, --hostfile FILE and --mpirun-options OPTIONS."
}

# for_all [OPTION...]: whether all parts take these.
for_all() {
	while [ $# -gt 0 ]; do
		case $1 in
		--quick | --hostfile=* | --mpirun-options=*) shift ;;
		--hostfile | --mpirun-options) shift && shift || return 1 ;;
		*) return 1 ;;
		esac
	done
}

parts=(overlap latency)
case ${1-} in
overlap | latency | bandwidth | rate | depth | memory | halo | sp | patterns | barrier | verbs | picture)
	parts=("$1")
	shift
	;;
all)
	parts=(overlap latency bandwidth rate depth memory halo sp patterns barrier verbs)
	shift
	case ${1-} in -h | --help) usage && exit 0 ;; esac
	for_all "$@" || die "all parts together have no options but --quick, --hostfile FILE, --mpirun-options OPTIONS and --help"
	;;
-h | --help)
	usage
	exit 0
	;;
"" | -*) ;;
*) die "there is no benchmark called $1; there are: overlap latency bandwidth rate depth memory halo sp patterns barrier verbs picture all" ;;
esac

# Help needs no set-up, where there is Python.
case ${1-} in
-h | --help)
	[ "${parts[*]}" = verbs ] || ! command -v python3 >/dev/null ||
		exec python3 "$top/bench/driver" "${parts[0]}" --help
	;;
esac
packages=("${build_packages[@]}")
[ "${parts[*]}" = verbs ] ||
	packages+=(libopenmpi-dev openmpi-bin openssh-client ibverbs-providers python3 gnuplot-nox)
[ "${parts[*]}" = verbs ] || [ -n "$cluster" ] || packages+=(perftest ucx-utils)
need_packages "${packages[@]}"
build_tree "$top/build" "all bench"
# shellcheck disable=SC1091 # made by the build
. "$top/build/build/env.sh"

# run_part NAME [OPTION...]
run_part() {
	case $1 in
	verbs)
		shift
		if [ -n "$cluster" ]; then
			echo "verbs measures softhca, which a hostfile has no use for; on an adapter run verbs_bench --device NAME" >&2
			return 1
		fi
		"$top/bench/verbs/run.sh" "$@"
		;;
	*) "$top/bench/mpi/run.sh" "$@" ;;
	esac
}

status=0
for part in "${parts[@]}"; do
	[ ${#parts[@]} -eq 1 ] || printf '\n== %s\n\n' "$part"
	# The verbs part has options of its own, and a length that --quick would shorten to this.
	if [ "$part" = verbs ] && [ ${#parts[@]} -gt 1 ] && [ -z "$cluster" ]; then
		case " $* " in
		*" --quick "*) set -- --rounds 5 ;;
		*) set -- ;;
		esac
	fi
	# The main job is about the two sides; all parts together are about everything.
	variants=()
	[ "$part" != overlap ] || [ ${#parts[@]} -le 2 ] || variants=(--variants)
	run_part "$part" "${variants[@]}" "$@" || status=$?
done
exit "$status"
