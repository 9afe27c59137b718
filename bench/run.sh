#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Benchmarks: bench/run.sh [PART] [OPTION...] builds the programs, then runs that part. Without a name the main job runs: overlap and
# latency. Options go to the parts: README.md and bench/run.sh PART --help explain them.
# If root runs this, apt-get installs missing Debian packages. Otherwise missing packages are named, and nothing runs.
set -euo pipefail
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/../tests/setup.sh"
# shellcheck source=bench/load.sh
. "$top/bench/load.sh"
bench=$top/bench
# shellcheck source=bench/words.sh
. "$bench/words.sh"

# Options of the parts that matter here, too. cluster: the ranks run on a hostfile's hosts, which have adapters of their own.
# mpirun: an mpiexec of MPICH, whose compiler builds the programs.
cluster="" virtual="" help="" mpirun="" last=""
for word in "$@"; do
	[ "$last" != --mpirun ] || mpirun=$word
	last=$word
	case $word in
	-h | --help) help=1 ;;
	--hostfile | --hostfile=*) cluster=1 ;;
	--virtual) virtual=1 ;;
	--mpirun=*) mpirun=${word#*=} ;;
	--) break ;;
	esac
done

# The parts that measure, and the other names.
all_parts=(overlap latency bandwidth rate depth memory halo sp patterns barrier icoll fft rma portals verbs)
other_parts=(picture paper)
# The parts that have figures in virtual time; the driver knows them too.
virtual_parts=(overlap latency rate halo sp patterns barrier icoll fft rma portals)

usage() {
	sed -n '3,/^set/{/^#/s/^# //p}' "$0"
	echo "Parts: ${all_parts[*]} ${other_parts[*]}; all runs all but ${other_parts[*]}."
	echo "All parts together take --quick, --hostfile FILE and --mpirun-options OPTIONS."
	echo "With --virtual these parts run in virtual time: ${virtual_parts[*]}."
}

# for_all [OPTION...]: succeeds if all parts take these options.
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
all)
	parts=("${all_parts[@]}")
	shift
	[ -z "$help" ] || { usage && exit 0; }
	for_all "$@" || die "all parts together have no options but --quick, --hostfile FILE, --mpirun-options OPTIONS and --help"
	;;
-h | --help)
	usage
	exit 0
	;;
"" | -*) ;;
*)
	case " ${all_parts[*]} ${other_parts[*]} " in
	*" $1 "*) parts=("$1") ;;
	*) die "there is no benchmark called $1; there are: ${all_parts[*]} ${other_parts[*]} all" ;;
	esac
	shift
	;;
esac

if [ -n "$virtual" ]; then
	for part in "${parts[@]}"; do
		case " ${virtual_parts[*]} " in *" $part "*) continue ;; esac
		die "$part has no figures in virtual time; --virtual is for ${virtual_parts[*]}"
	done
fi

# Help needs neither packages nor a build. Without a part's program the general text is shown.
if [ -n "$help" ]; then
	program=$top/build/bench/verbs/verbs_bench
	if [ "${parts[*]}" = paper ]; then
		! command -v python3 >/dev/null || BENCH_TOP=$top BENCH_PROGRAMS='' exec python3 "$top/bench/paper" --help
	elif [ "${parts[*]}" != verbs ]; then
		! command -v python3 >/dev/null || exec python3 "$top/bench/driver" "${parts[0]}" --help
	elif [ -f "$program" ] && [ -x "$program" ]; then
		exec "$program" --help
	fi
	usage
	exit 0
fi
[ ${#parts[@]} -gt 2 ] || for part in "${parts[@]}"; do
	if [ -n "$cluster" ]; then
		case $part in
		verbs) die "verbs measures softhca, which a hostfile's hosts don't use; on an adapter run verbs_bench --device NAME" ;;
		paper) die "paper runs in softhca's virtual time, which a hostfile's hosts don't have" ;;
		esac
	fi
	check_words "$part" "$@"
done
packages=("${build_packages[@]}")
[ "${parts[*]}" = verbs ] ||
	packages+=(libopenmpi-dev openmpi-bin openssh-client ibverbs-providers python3 gnuplot-nox)
[ "${parts[*]}" = verbs ] || [ -n "$cluster" ] || packages+=(perftest ucx-utils)
# The only part that needs FFTW.
[[ " ${parts[*]} " != *" fft "* ]] || packages+=(libfftw3-dev)
need_packages "${packages[@]}"

# Before the build, which keeps CPUs busy itself. Figures in virtual time don't depend on that.
[ -n "$virtual" ] || [ "${parts[*]}" = paper ] || warn_if_busy "$(busy_cpus)" "$(nproc --all)"
build_tree "$top/build" "all bench"
if [ -n "$mpirun" ]; then
	mpicc=$(cd "$(dirname "$mpirun")" && pwd)/mpicc
	# Objects of another MPICH don't fit.
	[ "$(cat "$top/build/mpich/mpicc" 2>/dev/null)" = "$mpicc" ] || rm -rf "$top/build/mpich"
	build_tree "$top/build/mpich" "CC=$mpicc MPI_CFLAGS= MPI_LIBS= $(printf 'bench/mpi/%s ' overlap latency bandwidth depth)"
	echo "$mpicc" >"$top/build/mpich/mpicc"
	export BENCH_PROGRAMS=$top/build/mpich/bench/mpi
fi
# shellcheck disable=SC1091 # made by the build
. "$top/build/build/env.sh"

# run_part NAME [OPTION...]: becomes that part's script.
run_part() {
	case $1 in
	verbs)
		shift
		if [ -n "$cluster" ]; then
			echo "verbs measures softhca, which a hostfile's hosts don't use; on an adapter run verbs_bench --device NAME" >&2
			return 1
		fi
		exec "$top/bench/verbs/run.sh" "$@"
		;;
	paper)
		shift
		export BENCH_TOP=$top BENCH_PROGRAMS=${BENCH_PROGRAMS-$TUPLEQ_BUILD/bench/mpi} PYTHONDONTWRITEBYTECODE=1
		exec python3 "$top/bench/paper" "$@"
		;;
	*) exec "$top/bench/mpi/run.sh" "$@" ;;
	esac
}

# A signal ends the part with its ranks. Parts run in the background, so that the shell gets the signal at once.
running=
stop() {
	trap '' INT TERM HUP
	[ -z "$running" ] || kill -TERM "$running" 2>/dev/null
	wait
	exit $((128 + $1))
}
trap 'stop 1' HUP
trap 'stop 2' INT
trap 'stop 15' TERM

status=0
for part in "${parts[@]}"; do
	[ ${#parts[@]} -eq 1 ] || printf '\n== %s\n\n' "$part"
	# The verbs part has options of its own; --quick stands for fewer rounds there.
	if [ "$part" = verbs ] && [ ${#parts[@]} -gt 1 ] && [ -z "$cluster" ]; then
		case " $* " in
		*" --quick "*) set -- --rounds 5 ;;
		*) set -- ;;
		esac
	fi
	# The main job measures the two sides; all parts together measure the variants too.
	variants=()
	[ "$part" != overlap ] || [ ${#parts[@]} -le 2 ] || variants=(--variants)
	run_part "$part" "${variants[@]}" "$@" &
	running=$!
	wait "$running" || status=$?
done
exit "$status"
