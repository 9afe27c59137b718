#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The papers' figures in virtual time, a few points of each: they can be made, and their files are well-formed. No figure is judged.
# This script needs softhca in PATH, and the programs in $TEST_BUILD/bench/mpi.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export BENCH_TOP=$top BENCH_PROGRAMS=$TEST_BUILD/bench/mpi BENCH_RESULTS=$tmp/results PYTHONDONTWRITEBYTECODE=1
# shellcheck source=tests/check.sh
. "$top/tests/check.sh"
evidence=$tmp/err

# figure NAME PYTHON [OPTION...]: a figure is made, and the expression holds for `rounds`, the results of tupleq.
figure() {
	rm -rf "$BENCH_RESULTS"
	timeout -k 5 120 python3 "$top/bench/paper" --quick --cpu 0 --columns tupleq "$1" "${@:3}" >"$tmp/err" 2>&1 || return 1
	python3 - "$1" "$2" 2>>"$tmp/err" <<-'END'
		import glob, json, os, sys
		path, = glob.glob(f"{os.environ['BENCH_RESULTS']}/paper-{sys.argv[1]}-*.json")
		run, = json.load(open(path))["runs"]
		rounds = run["rounds"][0]
		if not eval(sys.argv[2]):
		    sys.exit(f"this doesn't hold: {sys.argv[2]}")
	END
}

# timeline PROGRAM: the picture is made, and shows that its four ranks compute and that data arrive.
timeline() {
	timeout -k 5 300 python3 "$top/bench/paper" --quick --columns tupleq --timeline "$1" >"$tmp/err" 2>&1 || return 1
	python3 - "$1" 2>>"$tmp/err" <<-'END'
		import glob, json, os, sys
		path, = glob.glob(f"{os.environ['BENCH_RESULTS']}/paper-timeline-{sys.argv[1]}-*.json")
		run, = json.load(open(path))["runs"]
		rows = run["rounds"][0]["rows"]
		for row in rows.values():
		    for kind in ("computes", "data arrive"):
		        if not any(one[0] == kind and one[2] > one[1] for one in row):
		            sys.exit(f"a rank of the timeline has no stretch '{kind}'")
		if len(rows) != 4:
		    sys.exit(f"the timeline has {len(rows)} ranks")
	END
	ls "$tmp/results/paper-timeline-$1-"*.png >>"$tmp/err"
}

# played LINES CHECK...: runs the check with an mpirun that is these lines of shell, and a softhca that only runs its command.
mkdir "$tmp/played"
# shellcheck disable=SC2016 # for the script
printf '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n' >"$tmp/played/softhca"
played() {
	printf '#!/bin/sh\n%s\n' "$1" >"$tmp/played/mpirun"
	chmod +x "$tmp/played/softhca" "$tmp/played/mpirun"
	PATH=$tmp/played:$PATH "${@:2}"
}

# tells TEXT...: the figure isn't made, and each text is in what is printed.
tells() {
	local text

	! figure sp True --replay || return 1
	for text; do
		grep -qF -- "$text" "$tmp/err" || return 1
	done
}

# refused TEXT [ARGUMENT...]: status 2, and a message with the text.
refused() {
	local text=$1 status=0
	shift
	python3 "$top/bench/paper" "$@" >"$tmp/err" 2>&1 || status=$?
	[ "$status" -eq 2 ] && grep -qF -- "$text" "$tmp/err"
}

check "paper overlap" figure overlap "{one['side'] for one in rounds} == {'send', 'recv'}"
check "paper sp" figure sp "all(one['verified'] for one in rounds)"
# Computing is slept, so it isn't verified, and takes the greater part of the time.
check "paper sp --replay" figure sp "all(one['replay'] and one['verified'] is None and one['mpi_share'] < 0.5 for one in rounds)" \
	--replay --cpu 20 --knob noise
check "paper sp, all knobs" figure sp "all(one['replay'] and one['ranks'] == 4 for one in rounds)" \
	--replay --cpu 20 --steps 2 --knob dense,half-link,half-loopback,in-turn,noise,register
# mpirun writes each stream in parts, which may end amid a line, and those of the other stream at any time between them.
check "paper sp, a report amid the result" played \
	'printf "{\"steps\":100,\"seconds\":1,"; echo "The HCA matched 3 of 4 messages" >&2; echo "\"mpi_share\":0.1}"' \
	figure sp "rounds[0]['matched'] == 0.75" --replay
check "paper sp, no result" played 'echo odd >&2; echo even' \
	tells "ended with status 0 and printed no result" "    | odd" "    | even"
check "paper sp, nothing" played 'exit 0' tells "ended with status 0 and printed nothing"
check "paper sp, half a result" played 'echo "{\"steps\":100,\"seco"; echo odd >&2' \
	tells 'a result of the program is no JSON: {"steps":100,"seco' "    | odd"
check "paper sp, mpirun after a signal" played 'exit 1' tells "as if a signal had ended mpirun (status 1)"
check "paper sp, a signal" played 'echo odd >&2; kill -SEGV $$' tells "odd (status " "    | odd"
kept=$tmp/computing.json
check "paper sp --computing, measured" figure sp "len(json.load(open('$kept'))['S4']) == 9" --replay --steps 2 --computing "$kept"
# One microsecond a point in each section: more than any CPU takes.
sed -i -E 's/: [0-9.]+/: 1000/' "$kept"
cp "$kept" "$tmp/edited.json"
check "paper sp --computing, kept" figure sp "rounds[0]['seconds'] > 0.005 and open('$kept').read() == open('$tmp/edited.json').read()" \
	--replay --cpu 1 --steps 2 --computing "$kept"
echo nothing >"$tmp/nothing.json"
check "paper barrier" figure barrier \
	"[(one['ranks'], one['per_node']) for one in rounds] == [(2, 1), (2, 2), (4, 1), (4, 2)] and all(one['us'] < 100 for one in rounds)"
check "paper depth" figure depth "[one['depth'] for one in rounds] == [0, 64, 256]"
check "paper bypass" figure bypass "{one['tests'] for one in rounds} == {0, 3}"
check "paper resources" figure resources "[(one['lanes'], one['targets'], one['srqs']) for one in rounds] == [(5, 6, 5)]"
check "paper halo" figure halo "{one['pattern'] for one in rounds} == {'halo', 'stencil'} and 0 < rounds[0]['matched'] < 1"
check "paper --timeline" timeline sp
if [ -x "$BENCH_PROGRAMS/fft/fft" ]; then
	check "paper --timeline fft" timeline fft
else
	echo "ok paper --timeline fft # SKIP built without FFTW (libfftw3-dev)"
fi
check "a timeline beside figures" refused "leave the figures out" sp --timeline
check "a timeline of a figure" refused "invalid choice: 'overlap'" --timeline overlap
check "a number of steps that is none" refused "--steps wants a positive number" sp --steps 0
check "a figure that there isn't" refused "there is no figure nothing" nothing
check "a case that there isn't" refused "--cases wants some of" sp --cases Z1
check "a number of processes that there isn't" refused "--cases wants some of 2, 4, 8" barrier --cases 3
check "cases without their figure" refused "--cases goes with one figure of sp, barrier, resources" --cases 4
check "cases of a figure without" refused "--cases goes with one figure of" depth --cases 4
check "a knob that there isn't" refused "there is no knob none" sp --replay --knob noise,none
check "a knob without --replay" refused "--knob goes with --replay" sp --knob dense
check "--computing without --replay" refused "--computing goes with --replay" sp --computing "$kept"
check "a file without times" refused "nothing.json" sp --replay --computing "$tmp/nothing.json"
check "a factor that is too large" refused "--cpu wants a factor" --cpu 2000
exit $bad
