#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mpi/run.sh PART [--link|--no-link] [OPTION...] runs one part of the MPI benchmarks on softhca's virtual nodes, with a link model or
# without. bench/run.sh --help names the parts.
# bench/run.sh calls this with the build tree's environment. SOFTHCA_RUN_OPTIONS holds further options of `softhca run`.
set -euo pipefail

case ${1-} in
-h | --help)
	sed -n '3,/^set/{/^#/s/^# //p}' "$0"
	exit 0
	;;
esac

die() {
	echo "mpi: $*" >&2
	exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
bench=$here/..
# shellcheck source=bench/words.sh
. "$bench/words.sh"
part=${1?which part? bench/run.sh --help names them}
known_parts | grep -qx -e "$part" || die "there is no part called $part; there are: $(known_parts | xargs)"
check_words "$@"
BENCH_TOP=$(cd "$here/../.." && pwd)
BENCH_PROGRAMS=${BENCH_PROGRAMS-${TUPLEQ_BUILD:+$TUPLEQ_BUILD/bench/mpi}}

# The driver checks the options, but it runs within the fabric, which the options below change. The driver takes no abbreviations of them.
link_model=(--link "latency=1.3us,bandwidth=1.5GB/s") # as the paper's adapter
link=()
adapter=("${link_model[@]}") # in virtual time
virtual="" hostfile="" mpich="" cpu=1 ranks=4
words=("$@")
for i in "${!words[@]}"; do
	next=${words[i + 1]-}
	case ${words[i]} in
	--link) link=("${link_model[@]}") ;;
	--no-link) link=(--link off) ;;
	--virtual) virtual=1 ;;
	--profile) adapter=(--profile "$next") ;;
	--profile=*) adapter=("${words[i]}") ;;
	--cpu) cpu=$next ;;
	--cpu=*) cpu=${words[i]#*=} ;;
	--ranks) ranks=$next ;;
	--ranks=*) ranks=${words[i]#*=} ;;
	--hostfile | --hostfile=*) hostfile=1 ;;
	--mpirun | --mpirun=*) mpich=1 ;;
	--) break ;;
	esac
done

[ -n "$BENCH_PROGRAMS" ] && [ -f "$BENCH_PROGRAMS/overlap" ] && [ -x "$BENCH_PROGRAMS/overlap" ] ||
	die 'its programs are not built; start this as bench/run.sh, or run "make bench" and source build/env.sh'
export BENCH_TOP BENCH_PROGRAMS
# The sources of Open MPI's own components for Portals 4 may be missing; the driver says so.
components=$BENCH_PROGRAMS/../../portals-openmpi
if [ "$part" = portals ] && [ ! -e "$components/mca_mtl_portals4.so" ]; then
	"$BENCH_TOP/tests/portals/components.sh" "$(cd "$BENCH_PROGRAMS/../.." && pwd)" "$components" >&2 || true
fi
export PYTHONDONTWRITEBYTECODE=1

# A hostfile's hosts have adapters of their own, and other CPUs.
[ -z "$hostfile" ] || exec python3 "$here/../driver" "$@"

command -v softhca >/dev/null || die "softhca isn't found; source build/env.sh first"

# cores: prints the CPUs that this process may use, one of each core.
cores() {
	local cpu siblings allowed
	allowed=$(taskset -pc $$ | sed 's/.*: //')
	for siblings in /sys/devices/system/cpu/cpu[0-9]*/topology/thread_siblings_list; do
		cpu=${siblings#/sys/devices/system/cpu/cpu}
		echo "${cpu%%/*} $(cat "$siblings")"
	done | sort -n | awk -v allowed="$allowed" '
		BEGIN {
			n = split(allowed, range, ",")
			for (i = 1; i <= n; i++) {
				split(range[i], end, "-")
				for (c = end[1]; c <= (end[2] == "" ? end[1] : end[2]); c++)
					may[c] = 1
			}
		}
		may[$1 + 0] && !seen[$2]++ { print $1 }'
}

mapfile -t core < <(cores)
all_cores=$(IFS=, && echo "${core[*]}")
if [ ${#core[@]} -ge 2 ]; then
	mpirun_options=(--map-by core --bind-to core)
else
	mpirun_options=(--oversubscribe --bind-to none)
fi
run_options=(--nodes 2 --memlock unlimited)

# The timing of the paper's adapter. The engines move messages of more than 4 KiB, not the posting rank. A polling rank copies no more than
# an inline message.
paper=("${link_model[@]}" --caller-limit 4K --cqe-payload 192)
# The cores that two ranks leave to the engines.
free_cores=$(IFS=, && echo "${core[*]:2:2}")
# Without a free core, engines take turns with ranks that compute: an engine wakes up for a message and then sleeps at once.
no_room=(--engine-cpus "$all_cores" --engine-spin 0)

case $part in
overlap | picture)
	# The measured rank has a core to itself, as beside a real adapter. The engines have other cores. With two cores
	# the other rank shares its core with them, so a rank that waits yields. The engines stand for an adapter: they move
	# every message that doesn't fit into its completion, and never sleep, however long the work.
	run_options+=("${paper[@]}" --caller-limit 192 --engine-cpus "${free_cores:-${core[-1]}}" --engine-spin 1s)
	mpirun_options+=(--mca mpi_yield_when_idle 1)
	;;
halo)
	# Both ranks compute.
	run_options+=("${paper[@]}")
	if [ -n "$free_cores" ]; then
		run_options+=(--engine-cpus "$free_cores")
	else
		run_options+=("${no_room[@]}")
	fi
	mpirun_options+=(--mca mpi_yield_when_idle 1)
	;;
sp)
	# There may be more ranks than cores, so nothing is bound, and a rank that waits yields.
	run_options+=("${paper[@]}" "${no_room[@]}")
	mpirun_options=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
	;;
latency | bandwidth | rate | depth | rma | portals)
	# The posting rank moves small messages. The engines, which move large ones, run on any free core.
	run_options+=(--engine-cpus "$all_cores")
	;;
patterns)
	# All ranks are measured alike, so the engines run on any free core, and sleep early, because ranks need the same cores.
	run_options+=("${paper[@]}" --engine-cpus "$all_cores" --engine-spin 20us)
	[ ${#core[@]} -lt 2 ] || mpirun_options=(--map-by core:oversubscribe --bind-to core:overload-allowed)
	mpirun_options+=(--mca mpi_yield_when_idle 1)
	;;
memory)
	# Nothing is timed, and there are more ranks than cores.
	run_options=(--nodes 4 --memlock unlimited)
	mpirun_options=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
	;;
icoll | fft)
	# All ranks are measured, and there may be more than cores: they compute, and the engines take turns with them.
	run_options+=("${paper[@]}" "${no_room[@]}")
	mpirun_options=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
	;;
barrier)
	run_options=(--nodes 5 --memlock unlimited --engine-cpus "$all_cores")
	;;
*) die "there is no part called $part" ;;
esac

# In virtual time each rank and each adapter has a CPU of its own, so nothing is bound, and no option is for engines. perftest and UCX
# read the CPU's counter. SP has eight ranks a node, as in the paper, and icoll and fft have a node for each rank, but at most 64.
if [ -n "$virtual" ]; then
	[[ $ranks =~ ^[1-9][0-9]{0,5}$ ]] || die "--ranks wants a positive number, not \"$ranks\""
	case $part in
	icoll | fft) nodes=$((ranks < 64 ? ranks : 64)) ;;
	sp) nodes=$((ranks > 16 ? (ranks + 7) / 8 : 2)) ;;
	*) nodes=${run_options[1]} ;;
	esac
	[[ $cpu =~ ^[0-9]+(\.[0-9]+)?$ ]] || die "--cpu wants a factor from 0 to 1000, not \"$cpu\""
	run_options=(--nodes "$nodes" --memlock unlimited --clock virtual --clock-cpu "$cpu" --clock-tsc trap "${adapter[@]}")
	mpirun_options=(--oversubscribe --bind-to none)
	all_cores=
	# ib_write_lat looks for the message in memory, without a call: each turn takes a quantum.
	[ "$part" != rma ] || run_options+=(--clock-quantum 1ms)
fi

# MPICH's mpiexec has fewer options: ranks are bound to a core each, or not at all. One that waits doesn't yield.
if [ -n "$mpich" ]; then
	case "${mpirun_options[*]}" in
	*"--bind-to core"*) mpirun_options=(-bind-to core -map-by core) ;;
	*) mpirun_options=(-bind-to none) ;;
	esac
fi

# shellcheck disable=SC2206 # a list of options; the last one of a name counts
run_options+=("${link[@]}" ${SOFTHCA_RUN_OPTIONS-})
BENCH_CORES=$all_cores
BENCH_SOFTHCA_OPTIONS=${run_options[*]}
BENCH_MPIRUN_OPTIONS=${mpirun_options[*]}
export BENCH_CORES BENCH_SOFTHCA_OPTIONS BENCH_MPIRUN_OPTIONS
exec softhca run "${run_options[@]}" -- python3 "$here/../driver" "$@"
