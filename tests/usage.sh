#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage.sh - help and unknown words: the scripts say which words they know, and begin nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/says.sh
. tests/says.sh
bad=0

says 0 "Parts: overlap latency" bench/run.sh --help
says 0 "All parts together take --quick" bench/run.sh all --help
says 0 "All parts together take --quick" bench/run.sh all -h
says 1 "no options but --quick" bench/run.sh all --rounds 3
says 1 "--quick chooses the tests itself" tests/run.sh --quick unit
says 1 "there is no benchmark called nothing; there are: overlap" bench/run.sh nothing
says 1 "there is no benchmark called lat; there are: overlap" bench/run.sh lat
says 1 "verbs has no figures in virtual time; --virtual is for overlap" bench/run.sh verbs --virtual
for part in "" overlap paper verbs; do
	# shellcheck disable=SC2086 # no name is no word
	says 1 "has no option --hepl; it has: --" bench/run.sh $part --hepl
done
says 1 "has no option -q; it has: --" bench/run.sh -q
says 1 "overlap has no option --quic; it has: --" bench/run.sh overlap --quick --quic=1
says 2 "--rounds: wants a positive number" bench/run.sh latency --rounds 0
says 2 "--profile is for --virtual alone" bench/run.sh latency --profile hdr
says 2 "a profile has a link of its own" bench/run.sh latency --virtual --link --profile hdr
says 2 "there is no column tuple; there are: tupleq," bench/run.sh latency --columns tuple
says 2 "/bin/true is not MPICH's mpiexec" bench/run.sh rate --mpirun /bin/true
says 2 "there is no figure spp; there are:" bench/run.sh paper spp
says 2 "options of a program are for" bench/run.sh latency -- --nothing
says 1 "which a hostfile's hosts don't use" bench/run.sh verbs --hostfile none
says 0 "usage: bench/run.sh" bench/run.sh latency --quick --help
says 1 "there is no part called --hepl; there are: overlap" env -u TUPLEQ_BUILD bench/mpi/run.sh --hepl
says 1 "latency has no option --hepl" env -u TUPLEQ_BUILD bench/mpi/run.sh latency --hepl
says 1 "verbs has no option --hepl" env -u TUPLEQ_BUILD bench/verbs/run.sh --hepl
says 1 "and not --hepl" tests/aarch64.sh --hepl
says 0 "Groups: lint unit" tests/run.sh --help
says 0 "with --long" tests/run.sh --long --help
says 1 "there is no group nothing; there are: lint unit" tests/run.sh nothing
says 1 "there is no group nothing; there are: lint unit" tests/run.sh --long nothing
says 1 "there is no option --nothing" tests/run.sh --nothing
says 1 "there is no option --nothing" tests/run.sh lint --nothing
says 1 "--hostfile wants the name" tests/run.sh --hostfile
says 1 "--device and --hostfile are for group adapter alone" tests/run.sh --device mlx5_0
says 1 "--build wants the directory" tests/run.sh --build
says 0 "runs: unit" tests/debian13.sh --help
says 1 "there is no option --nothing" tests/debian13.sh --nothing
says 1 "there is no group nothing; there are: lint unit" tests/debian13.sh nothing
says 1 "there is no option --nothing" tests/debian13.sh lint --nothing
says 1 "DEBIAN13_ROOT=/ is this system itself" env DEBIAN13_ROOT=/ tests/debian13.sh unit
says 0 "" tests/run.sh --words lint unit
minutes=$(tests/run.sh --help | sed -n 's/^All groups take \([0-9]*\) minutes.*/\1/p')
[ "${minutes:-99}" -lt 30 ] || { echo "all groups take $minutes minutes, by tests/groups/*.sh, and should stay below 30" && bad=1; }
# shellcheck disable=SC2016 # the inner shell's
says 0 "1.60 of 2 CPUs are in use. Figures" bash -c '. bench/load.sh; warn_if_busy 1.60 2'
[ -z "$(bash -c '. bench/load.sh; warn_if_busy 0.90 2' 2>&1)" ] || { echo "0.90 of 2 CPUs in use are called busy" && bad=1; }
# shellcheck disable=SC2016 # the inner shell's
says 0 "busy" bash -c '. bench/load.sh
	( while :; do :; done ) &
	busy_cpus | awk "{ print (\$1 > 0.5 ? \"busy\" : \"idle\") }"
	kill $!'
# The time that is expected includes the build, unless nothing has changed since the last one. A group that builds nothing tells.
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{bench,build/build,include,m4,ompi-btl,src,tests/groups}
cp tests/run.sh tests/setup.sh tests/tally.sh "$tree/tests"
touch "$tree/configure.ac" "$tree/Makefile.am" "$tree/src/new.c"
cat >"$tree/tests/groups/unit.sh" <<'END'
takes unit 5
group_unit() {
	make_build() { :; }
	use_build() { build=$1; }
	plain_build
	pass_or_fail unit 5 true
}
END
ln -s "$PWD/tests/as_test" "$tree/tests"
says 0 "This takes about 3 minutes" "$tree/tests/run.sh" unit
says 0 "; 125 s were expected with the build" "$tree/tests/run.sh" unit
touch "$tree/build/build/env.sh" "$tree/build/make.out"
says 0 "This takes about 1 minutes" "$tree/tests/run.sh" unit
says 0 "; 15 s were expected with the build" "$tree/tests/run.sh" unit
touch -d "1 hour" "$tree/src/new.c"
says 0 "; 125 s were expected with the build" "$tree/tests/run.sh" unit
says 0 "; 5 s were expected" "$tree/tests/run.sh" --build "$tree/build" unit

# A busy machine's targets aren't judged, and that is said once: if bench/run.sh found it busy, or if it was busy during the run.
judged='import sys
sys.path.insert(0, "bench/driver")
import load, report, time
load.begin()
time.sleep(1.1)
for name in ("tupleq", "tupleq-auto"):
    report.print_targets(name)
    report.judge("faster than light", False)'
export PYTHONDONTWRITEBYTECODE=1
said=$(BENCH_BUSY="1.60 of 2" python3 -c "$judged")
[ "$(grep -c '1.60 of 2 CPUs' <<<"$said")" -eq 1 ] && [ "$(wc -l <<<"$said")" -eq 3 ] && [[ $said != *MET* ]] ||
	{ echo "a busy machine's targets: $said" && bad=1; }
loops=()
for _ in $(seq "$(nproc --all)"); do
	while :; do :; done &
	loops+=($!)
done
said=$(python3 -c "$judged")
kill "${loops[@]}"
[[ $said == *"not judged: this machine is busy"* && $said != *MET* ]] || { echo "targets of a run that other programs disturbed: $said" && bad=1; }
said=$(python3 -c "${judged/load.begin()/}") # as in virtual time
[ "$(grep -c 'NOT MET' <<<"$said")" -eq 2 ] || { echo "targets in virtual time: $said" && bad=1; }
exit "$bad"
