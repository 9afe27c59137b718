#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Benchmarks: bench/run.sh [overlap|latency|halo|sp|patterns|barrier|verbs|all] [OPTION...]. Sets up and builds, then runs that part; without a
# name the main job, which is overlap and latency. Options go to the parts (see README.md).
set -euo pipefail
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../tests/setup.sh"

parts=(overlap latency)
case ${1-} in
overlap | latency | halo | sp | patterns | barrier | verbs)
	parts=("$1")
	shift
	;;
all)
	parts=(overlap latency halo sp patterns barrier verbs)
	shift
	[ $# -eq 0 ] || [ "$*" = --quick ] || die "all parts together have no option but --quick"
	;;
"" | -*) ;;
*) die "there is no benchmark called $1; there are: overlap latency halo sp patterns barrier verbs all" ;;
esac

packages=("${build_packages[@]}")
[ "${parts[*]}" = verbs ] ||
	packages+=(libopenmpi-dev openmpi-bin openssh-client ibverbs-providers perftest ucx-utils python3 gnuplot-nox)
need_packages "${packages[@]}"
build_tree "$top/build" "all bench"
# shellcheck disable=SC1091 # made by the build
. "$top/build/build/env.sh"

# run_part NAME [OPTION...]
run_part() {
	case $1 in
	verbs)
		shift
		"$top/bench/verbs/run.sh" "$@"
		;;
	*) "$top/bench/mpi/run.sh" "$@" ;;
	esac
}

status=0
for part in "${parts[@]}"; do
	[ ${#parts[@]} -eq 1 ] || printf '\n== %s\n\n' "$part"
	# The verbs part has options of its own, and a length that --quick would shorten to this.
	if [ "$part" = verbs ] && [ ${#parts[@]} -gt 1 ]; then
		set -- ${1:+--rounds 5}
	fi
	run_part "$part" "$@" || status=$?
done
exit "$status"
