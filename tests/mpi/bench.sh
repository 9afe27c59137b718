#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Short benchmarks: their programs and parts run, on softhca and on the hosts of a hostfile, and their
# output is well-formed. No figure of real time is judged. This script needs softhca in PATH, and the programs in $TEST_BUILD/bench/mpi.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export BENCH_PROGRAMS=$TEST_BUILD/bench/mpi BENCH_RESULTS=$dir/results
bad=0

# judge NAME STATUS PYTHON: a test that passes if STATUS is 0 and the expression holds, which may use `objects`, one for each line of
# the log that is JSON, `file`, the newest file of results, and `runs`, the runs in that file by name.
judge() {
	if [ "$2" -eq 0 ] && python3 - "$dir/log" "$3" >>"$dir/log" 2>&1 <<-'END'; then
		import glob, json, os, sys
		objects = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
		files = glob.glob(os.environ["BENCH_RESULTS"] + "/*.json")
		file = json.load(open(max(files, key=os.path.getmtime))) if files else None
		runs = {run["name"]: run for run in file["runs"]} if file else {}
		if not eval(f"({sys.argv[2]})"):
		    sys.exit("this doesn't hold: " + sys.argv[2])
	END
		echo "ok bench: $1"
	else
		echo "not ok bench: $1: status $2"
		sed 's/^/# /' "$dir/log"
		bad=1
	fi
}

# program NAME RANKS PYTHON [ARGUMENT...]: runs a program on two nodes and judges its output.
program() {
	local name=$1 ranks=$2 holds=$3 status=0
	shift 3
	timeout -k 5 60 softhca run --nodes 2 --memlock unlimited -- \
		mpirun --oversubscribe --mca mpi_yield_when_idle 1 -n "$ranks" --mca pml tupleq \
		"$BENCH_PROGRAMS/$name" "$@" >"$dir/log" 2>&1 || status=$?
	judge "$name $*" $status "$holds"
}

# part PYTHON NAME [ARGUMENT...]: runs one part, as bench/run.sh starts it, and judges its output. On the hosts of a hostfile a
# column may be missing.
part() {
	local holds=$1 status=0
	shift
	timeout -k 5 100 "$top/bench/mpi/run.sh" "$@" >"$dir/log" 2>&1 || status=$?
	case "$*" in *--hostfile*) [ $status -ne 1 ] || status=0 ;; esac
	judge "bench/mpi/run.sh ${*//$dir\//}" $status "$holds"
}

# fails TEXT TIMEOUT COMMAND...: the driver says that the command failed, and why.
fails() {
	if python3 - "$top/bench/driver" "$@" >"$dir/log" 2>&1 <<-'END'; then
		import sys
		sys.path.insert(0, sys.argv[1])
		import jobs
		try:
		    jobs.run(sys.argv[4:], sys.argv[3])
		except jobs.Failed as failed:
		    print(failed)
		    sys.exit(sys.argv[2] not in str(failed))
		sys.exit("the command didn't fail")
	END
		echo "ok bench: ${*:3} is $1"
	else
		echo "not ok bench: ${*:3} is $1"
		sed 's/^/# /' "$dir/log"
		bad=1
	fi
}

# refuses TEXT NAME [ARGUMENT...]: a part with options that don't go together ends with a message that has the text.
refuses() {
	local text=$1 status=0
	shift
	timeout -k 5 60 "$top/bench/mpi/run.sh" "$@" >"$dir/log" 2>&1 || status=$?
	if [ "$status" -ne 0 ] && grep -qF -- "$text" "$dir/log"; then
		echo "ok bench: bench/mpi/run.sh ${*//$dir\//} is refused"
	else
		echo "not ok bench: bench/mpi/run.sh ${*//$dir\//}: status $status, and it doesn't say \"$text\""
		sed 's/^/# /' "$dir/log"
		bad=1
	fi
}

# starts TEXT NAME [ARGUMENT...]: a part starts softhca with options that have the text. Nothing is measured: this softhca only shows
# them.
mkdir "$dir/shows"
printf '#!/bin/sh\necho "$*"\n' >"$dir/shows/softhca"
chmod +x "$dir/shows/softhca"
starts() {
	local text=$1
	shift
	if PATH=$dir/shows:$PATH "$top/bench/mpi/run.sh" "$@" >"$dir/log" 2>&1 && grep -qF -- "$text" "$dir/log"; then
		echo "ok bench: bench/mpi/run.sh $* starts softhca with $text"
	else
		echo "not ok bench: bench/mpi/run.sh $* starts softhca with $text"
		sed 's/^/# /' "$dir/log"
		bad=1
	fi
}

# Each measurement is an object, with a figure and, if they are asked for, the sorted samples.
short=(--least 2 --most 20 --warm-up 10)
sorted="all(sorted(o['sorted_us']) == o['sorted_us'] != [] for o in objects)"
program latency 2 "[o['bytes'] for o in objects] == [1, 8192, 3 << 20] and all(o['half_us'] > 0 for o in objects) and $sorted" \
	--sizes 1,8K,3M --ms 1 --samples "${short[@]}"
PATH=$BENCH_PROGRAMS:$PATH fails "the range of message sizes 65536-8192 is empty" 60 mpirun -n 1 latency --sizes 64K-8K
program bandwidth 2 "[(o['bytes'], o['tags']) for o in objects] == [(1, 1), (1, 16), (1 << 20, 1), (1 << 20, 16)] and all(
	o['ways'] == 1 and o['gb_per_s'] > 0 and o['million_per_s'] > 0 for o in objects)" --sizes 1,1M --tags 1,16 --ms 1 "${short[@]}"
program bandwidth 2 "len(objects) == 2 and all(o['ways'] == 2 and o['gb_per_s'] > 0 for o in objects) and $sorted" \
	--sizes 300,70000 --both-ways --ms 1 --samples "${short[@]}"
program overlap 2 "[o['side'] for o in objects] == 2 * ['send', 'recv', 'both', 'late-recv', 'late-send'] and all(
	o['base_us'] > 0 and o['late'] == (0.9 if 'late' in o['side'] else 0) for o in objects)" \
	--sizes 1K,64K --side send,recv,both,late-recv,late-send --late 90 --step-ms 1 "${short[@]}"

program collective 4 "[o['bytes'] for o in objects] == [8, 300] and all(o['us'] > 0 for o in objects)" \
	--bcast 8,300 --ms 1 "${short[@]}"
program rma 2 "len(objects) == 1 and all(objects[0][f] > 0 for f in ('put_us', 'get_us', 'fetch_add_us', 'gb_per_s'))" --ms 1
timeout -k 5 60 "$BENCH_PROGRAMS/rma" --ms x >"$dir/log" 2>&1
judge "rma --ms x" 0 "'--ms wants a number from 1 to 100000, not \"x\"' in open(sys.argv[1]).read().splitlines()"
program halo 2 "[o['bytes'] for o in objects] == [16384, 16384] and all(o['step_us'] > 0 for o in objects)" \
	--sizes 16K --work 0,50 --step-ms 1 "${short[@]}"
program patterns 2 "[o['pattern'] for o in objects] == ['halo', 'late'] and all(o['step_us'] > 0 for o in objects)" \
	--patterns halo,late --sizes 256 --ms 1 --warm-up 3 --settle 3

program icoll 4 "[(o['operation'], o['bytes']) for o in objects] == [
	(name, size) for size in (8, 20000) for name in ('alltoallw', 'neighbor_alltoallw', 'exscan')] and all(
	o['base_us'] > 0 and [w['amount'] for w in o['work']] == [1, 1.5] for o in objects)" \
	--operations alltoallw,neighbor_alltoallw,exscan --sizes 8,20000 --ms 1 "${short[@]}"
program icoll 3 "len(objects) == 21 and all(o['blocking'] and not o['work'] for o in objects)" --blocking --sizes 1K --ms 1 "${short[@]}"
# FFTW is needed for this one alone.
if [ -x "$BENCH_PROGRAMS/fft/fft" ]; then
	program fft/fft 4 "len(objects) == 1 and objects[0]['error'] < 1e-12 and objects[0]['bytes'] == 512" \
		--points 16 --pieces 8 --tests --ms 1 --least 2 --most 20 --warm-up 3
	PATH=$BENCH_PROGRAMS/fft:$PATH fails "blocks of 68719476736 points are too long" 60 mpirun -n 1 fft --points 4096 --pieces 1
else
	echo "ok bench: fft # SKIP built without FFTW (libfftw3-dev)"
fi

part "len(runs['tupleq']['rounds'][0]) == 4 and '--link' not in file['settings']['softhca_options']" \
	rate --rounds 1 --columns tupleq -- --sizes 8,256 --ms 1 "${short[@]}"
part "all(len(runs[name]['rounds'][0]) == 4 for name in ('tupleq-auto', 'tupleq', 'ob1-vader', 'ucx-sm'))" \
	rate --one-node --rounds 1 -- --sizes 8,256 --ms 1 "${short[@]}"
part "'--link latency=' in file['settings']['softhca_options'] and len(runs['rget']['rounds'][0]['both ways']) == 7" \
	bandwidth --quick --rounds 1 --columns rget --link
part "{o['side'] for o in runs['tupleq']['rounds'][0]} == {'late-recv', 'both'} and
	file['settings']['softhca_options'].endswith('--link off')" \
	overlap --variants --no-link --rounds 1 --columns tupleq -- --side late-recv,both --sizes 64K --step-ms 1 "${short[@]}"
# The picture of the README, in another file; then again from the same results.
picture="open('$dir/picture.svg').read().startswith('<?xml')"
part "len(runs['tupleq']['rounds']) == 1 and $picture" \
	picture --rounds 1 --columns tupleq --output "$dir/picture.svg" -- --sizes 16K,64K --step-ms 1 "${short[@]}"
rm -f "$dir/picture.svg"
measured=$(echo "$dir"/results/picture-*.json)
part "$picture" picture --from "$measured" --output "$dir/picture.svg"
# Figures of other parts, and those of overlap measured elsewhere, are refused.
for change in "'softhca_options': None" "'virtual': True" "'within': True"; do
	python3 -c "import json, sys; data = json.load(open(sys.argv[1])); data['settings'] |= {$change}; print(json.dumps(data))" \
		"$measured" >"$dir/elsewhere.json"
	refuses "was not measured between softhca's nodes in real time" picture --from "$dir/elsewhere.json" --output "$dir/picture.svg"
done
refuses "has figures of rate" picture --from "$(echo "$dir"/results/rate-*.json | cut -d ' ' -f 1)" --output "$dir/picture.svg"

for kind in posted unexpected; do
	for order in tags random; do
		options=(--depths "0,40" --pairs 2 --repeats 20)
		[ $kind = posted ] || options+=(--unexpected)
		[ $order = tags ] || options+=(--random)
		program depth 2 "[o['depth'] for o in objects] == [0, 40] and all(
			(o['kind'], o['order']) == ('$kind', '$order') and len(o['ratio']) == 2 and min(o['with_us']) > 0
			for o in objects)" "${options[@]}"
	done
done

# The status of a program that was killed, or chose that of timeout(1), isn't that of one that took too long.
fails "not done after 1 s" 1 sleep 9
# shellcheck disable=SC2016 # the inner shell's pid
fails "killed by SIGKILL" 9 sh -c 'kill -KILL $$'
fails "killed by SIGKILL" 9 sh -c "exit 137"
# The lines of mpirun about an abort give no reason; they may come first, and alone.
fails "the reason (status 1)" 9 sh -c 'printf "MPI_ABORT was invoked on rank 0\nwith errorcode 1.\nthe reason\n"; exit 1'
fails "no message (status 124)" 9 sh -c "exit 124"
fails "no message (status 3)" 9 sh -c 'echo "{\"bytes\": 8}"; exit 3'

counters=pml_tupleq_own_bytes,pml_tupleq_registered_bytes,pml_tupleq_tuples
program memory 4 "sorted((o['peers'], o['tags'], o['rank']) for o in objects) == [
	(p, t, r) for p in (0, 3) for t in (1, 5) for r in range(4)] and all(
	len(o['counters']) == 3 and o['counters']['pml_tupleq_own_bytes'] > 0 and o['resident'] > 0
	for o in objects)" --peers 0,3 --tags 1,5 --counters $counters

part "[o['depth'] for o in runs['tupleq']['rounds'][0]] == 4 * [0, 30]" \
	depth --columns tupleq --rounds 1 -- --depths 0,30 --pairs 1 --repeats 10
part "[step['peers'] for step in runs['tupleq']['rounds'][0]['peers']] == [0, 1, 7] and all(
	process['qps'] > 0 and 0 < process['pml_tupleq_own_bytes'] <= process['pinned']
	for steps in runs['tupleq']['rounds'][0].values() for step in steps for process in step['processes'])" \
	memory --quick --columns tupleq

# Virtual time: parts run in it, work is a sleep where computing takes no time, and shared memory is left out where the kernel
# doesn't tell of writes to it.
part "len(runs['tupleq']['rounds'][0]) == len(runs['rget']['rounds'][0]) == 2 and
	'--clock virtual --clock-cpu 0 ' in file['settings']['softhca_options'] and
	('shared memory' in runs['ob1-vader']['skipped'] if runs['ob1-vader']['skipped'] else len(runs['ob1-vader']['rounds'][0]) == 2)" \
	halo --virtual --cpu 0 --rounds 1 --columns tupleq,rget,ob1-vader -- --sizes 16K --work 0,50
# By a profile: the head names it, and 16 KiB take less than the 11 us of the paper's link.
part "file['settings']['profile'] == 'ndr' and 0 < runs['tupleq']['rounds'][0][0]['step_us'] < 8" \
	halo --virtual --cpu 0 --rounds 1 --columns tupleq --profile ndr -- --sizes 16K --work 0
part "{o['side'] for o in runs['ucx-rc_v']['rounds'][0]} == {'late-recv', 'both'}" \
	overlap --virtual --cpu 0 --rounds 1 --columns ucx-rc_v -- --side late-recv,both --sizes 64K
part "len(runs['tupleq']['rounds'][0]) == 2 and '--clock-cpu 0.5 ' in file['settings']['softhca_options']" \
	patterns --virtual --cpu 0.5 --rounds 1 --columns tupleq -- --patterns stencil,jitter --sizes 1K
part "runs['tupleq']['rounds'][0]['ranks'] == 9 and runs['tupleq']['rounds'][0]['verified']" \
	sp --virtual --cpu 0 --class S --ranks 9 --rounds 1 --columns tupleq
part "len(runs['tupleq']['rounds'][0]) == len(runs['tupleq-libnbc']['rounds'][0]) == 2 * 2 and runs['tupleq']['rounds'][0][0]['ranks'] == 5" \
	icoll --virtual --cpu 0 --quick --ranks 5 --rounds 1 --columns tupleq,tupleq-libnbc -- --warm-up 3 --operations alltoall,bcast
fft=(fft --virtual --cpu 0 --quick --rounds 1 --columns tupleq -- --warm-up 3)
if [ -x "$BENCH_PROGRAMS/fft/fft" ]; then
	part "runs['tupleq']['rounds'][0]['']['gflops'] == 5.5 and ', testing' in runs['tupleq']['rounds'][0]" "${fft[@]}"
else
	refuses "fft wasn't built; install libfftw3-dev" "${fft[@]}"
fi
part "all(0 < runs[name]['rounds'][0]['put_us'] < 1.3 * runs['perftest RC']['rounds'][0]['put_us'] for name in ('tupleq', 'ob1-btl'))" \
	rma --virtual --cpu 0 --rounds 1 --columns tupleq,ob1-btl
# Open MPI's components may be missing, which is no failure.
part "'mtl-portals4' in runs and len(runs['tupleq']['rounds'][0]['latency']) == 1 and (
	'components' in str(runs['mtl-portals4']['skipped']) or len(runs['mtl-portals4']['rounds'][0]['depth']) == 2)" \
	portals --virtual --cpu 0 --quick --rounds 1
refuses "memory has no figures in virtual time" memory --virtual
refuses "--cpu is for --virtual alone" halo --cpu 0
refuses "wants a factor from 0 to 1000" halo --virtual --cpu fast
refuses "--profile is for --virtual alone" halo --profile hdr
refuses "a profile has a link of its own" halo --virtual --profile hdr --link
refuses 'There is no profile "hdrr"' halo --virtual --profile hdrr
starts "--profile hdr " halo --virtual --profile hdr
starts "--profile=hdr " halo --virtual --profile=hdr
refuses "--virtual needs a link model" halo --virtual --no-link
refuses "icoll has no option --virt;" icoll --virt --ranks 4
refuses "icoll has no option --rank;" icoll --virtual --rank 16
for ranks in 0 08 x -1; do
	refuses "wants a positive number" icoll --virtual --ranks=$ranks
done
refuses "wants a positive number" icoll --ranks 0
starts "--nodes 5 " icoll --virtual --ranks 5
starts "--nodes 64 " fft --virtual --ranks 100
starts "--nodes 128 " sp --virtual --ranks=1024
starts "--nodes 2 " sp --virtual --ranks 16
# Options behind -- are the program's.
starts "--nodes 2 " overlap -- --hostfile hosts --virtual
refuses "a hostfile's hosts have only the real one" halo --virtual --hostfile "$dir/results"

# MPICH's mpiexec. This one keeps hydra's options and the environment that they make, and runs the program on pml/tupleq.
mkdir "$dir/mpich"
cat >"$dir/mpich/mpiexec" <<-'END'
	#!/bin/bash
	[ "$1" != --version ] || exec echo "HYDRA build details:"
	here=$(dirname "$0")
	[ "$1" = -n ] && ranks=$2 && shift 2 || exit 1
	echo "$*" >>"$here/lines"
	while [[ $1 = -* ]]; do
		case $1 in
		-genv) export "$2=$3" && shift 3 ;;
		-bind-to | -map-by) shift 2 ;;
		*) echo "hydra has no option $1" && exit 1 ;;
		esac
	done
	exec mpirun --oversubscribe --mca mpi_yield_when_idle 1 -n "$ranks" --mca pml tupleq "$@"
END
printf '#!/bin/sh\necho "MPICH Version:    \t4.0.2"\necho "MPICH Device:    \t${DEVICE-ch4:ofi}"\n' >"$dir/mpich/mpichversion"
ln -s "$(type -P true)" "$dir/mpich/mpicc"
chmod +x "$dir/mpich"/*
mpich=(--mpirun "$dir/mpich/mpiexec")
lines="open('$dir/mpich/lines').read()"
part "len(runs['mpich-tupleq']['rounds'][0]) == len(runs['mpich-tcp']['rounds'][0]) == 2 and
	file['versions']['mpich'] == {'version': '4.0.2', 'device': 'ch4:ofi'} and $lines.count('\n') == 2 and all(
	' -genv FI_PROVIDER %s -genv MPIR_CVAR_NOLOCAL 1 $BENCH_PROGRAMS/bandwidth --sizes ' % name in $lines for name in ('tupleq', 'tcp;ofi_rxm'))" \
	rate --quick "${mpich[@]}" --rounds 1 -- --sizes 8 --ms 1 "${short[@]}"
rm "$dir/mpich/lines"
part "runs['mpich-tupleq']['rounds'][0][0]['side'] == 'send' and 'virtual' in runs['mpich-tcp']['skipped'] and
	$lines.startswith('-bind-to none -genv ')" \
	overlap --virtual --cpu 0 "${mpich[@]}" --rounds 1 -- --sizes 64K --side send
rm "$dir/mpich/lines"
part "runs['mpich-tupleq']['rounds'][0]['depth']['none_us'] and 'perftest XRC' in runs" \
	latency --quick "${mpich[@]}" --columns mpich-tupleq --rounds 1
refuses "column mpich-tcp needs the mpiexec of an MPICH" rate --columns mpich-tcp
refuses "with --mpirun there is no column rget" rate --columns rget "${mpich[@]}"
refuses "is not MPICH's mpiexec" rate --mpirun "$(type -P mpirun)"
refuses "is no program" rate --mpirun "$dir/mpich"
refuses "--mpirun is for overlap, latency, bandwidth, rate, depth alone" memory "${mpich[@]}"
refuses "a hostfile is Open MPI's" rate "${mpich[@]}" --hostfile "$dir/results"
DEVICE=ch4:ucx refuses "is built for ch4:ucx; libfabric's providers need ch4:ofi" rate "${mpich[@]}"
rm "$dir/mpich/mpicc"
refuses "there is no compiler" rate "${mpich[@]}"

# The output of a program is kept, too, if it isn't the output of a benchmark.
part "runs['ob1-vader']['skipped'].startswith('the program printed no class') and
	runs['ob1-vader']['output'].split() == 2 * ['$(uname)']" \
	sp --columns ob1-vader --rounds 1 --ranks 2 --npb "$(type -P uname)"

# Without softhca, tupleq finds an adapter or says that there is none; shared memory needs none.
echo "localhost slots=2" >"$dir/hosts"
part "file['settings']['softhca_options'] is None and len(runs['ob1-vader']['rounds']) == 1 and
	bool(runs['tupleq']['rounds']) != bool(runs['tupleq']['skipped']) == bool(runs['tupleq']['output'])" \
	depth --columns tupleq,ob1-vader --rounds 1 --hostfile "$dir/hosts" -- --depths 0,30 --pairs 1 --repeats 10

[ "$bad" -eq 0 ]
