#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The benchmarks of messages between two ranks: each program prints one well-formed JSON object per thing measured, and the
# driver makes tables of them, a column that can't run among them. No figure is looked at. It needs softhca in PATH, the
# programs in $TUPLEQ_BUILD/bench/mpi, and the tree in $TOP.
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
programs=$TUPLEQ_BUILD/bench/mpi

# verdict NAME STATUS: by the status of a command whose output is in $tmp/log.
verdict() {
	if [ "$2" -eq 0 ]; then
		echo "ok bench: $1"
	else
		echo "not ok bench: $1 - status $2"
		sed 's/^/# /' "$tmp/log"
	fi
}

# prints NUMBER FIELD PROGRAM ARGUMENT...: so many objects, whose field is a positive number.
prints() {
	local number=$1 field=$2 status=0
	shift 2
	timeout -k 5 60 softhca run --nodes 2 --memlock unlimited -- \
		mpirun --allow-run-as-root --oversubscribe --mca plm isolated --mca mpi_yield_when_idle 1 \
		-n 2 --mca pml tupleq "$programs/$1" "${@:2}" >"$tmp/out" 2>"$tmp/log" &&
		python3 - "$number" "$field" "$tmp/out" >>"$tmp/log" 2>&1 <<'END' || status=$?
import json, sys

number, field, path = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    objects = [json.loads(line) for line in file]
print(objects)
assert len(objects) == int(number), f"{len(objects)} objects"
for o in objects:
    assert o["bytes"] > 0 and o[field] > 0, o
    assert o.get("sorted_us", [1]) == sorted(o.get("sorted_us", [1])) != [], o
END
	verdict "$*" "$status"
}

# refused WORDS PROGRAM ARGUMENT...: an argument that is wrong, with a sentence that says so.
refused() {
	local words=$1 status=0
	shift
	timeout -k 5 60 softhca run --nodes 2 --memlock unlimited -- \
		mpirun --allow-run-as-root --oversubscribe --mca plm isolated -n 2 --mca pml tupleq "$programs/$1" "${@:2}" \
		>"$tmp/log" 2>&1 && status=1
	grep -qF -e "$words" "$tmp/log" || status=1
	verdict "$* is refused" "$status"
}

short=(--least 2 --most 20 --warm-up 10)
prints 4 half_us latency --sizes 1,8K,1M,3M --ms 1 "${short[@]}" --samples
prints 6 gb_per_s bandwidth --sizes 1,1K,1M --ms 1 "${short[@]}" --tags 1,16
prints 4 million_per_s bandwidth --sizes 1,300,70000,1M --ms 1 "${short[@]}" --both-ways --samples
prints 10 base_us overlap --sizes 1K,64K --side send,recv,both,late-recv,late-send --step-ms 1 "${short[@]}"
prints 1 base_us overlap --sizes 100K --side late-recv --late 90 --step-ms 1 "${short[@]}" --samples
refused 'there is no side "left"' overlap --side send,left
refused '--tags wants a number' bandwidth --tags 0

# driver TEST WORDS PART ARGUMENT...: a part in full, as bench/run.sh starts it; its output has these words, and its JSON file
# passes TEST.
driver() {
	local test=$1 words=$2 status=0
	shift 2
	rm -rf "$tmp/results"
	BENCH_RESULTS=$tmp/results timeout -k 5 180 "$TOP/bench/mpi/run.sh" "$@" >"$tmp/log" 2>&1 || status=$?
	grep -qE "$words" "$tmp/log" || status=1
	python3 -c "import json, sys; d = json.load(open(sys.argv[1])); r = {x['name']: x for x in d['runs']}; assert $test" \
		"$tmp/results"/*.json >>"$tmp/log" 2>&1 || status=1
	verdict "run.sh $*" "$status"
}

options="d['settings']['softhca_options']"
driver "len(r['tupleq']['rounds'][0]) == 4 and '--link' not in $options" 'at least 1.5 x ob1-openib: ' \
	rate --rounds 1 --columns tupleq -- --sizes 8,256 --ms 1 "${short[@]}"
driver "'--link latency=' in $options and d['settings']['link'] is True" '16 tags in turn' \
	rate --rounds 1 --columns rget --link -- --sizes 8 --ms 1 "${short[@]}"
driver "{o['side'] for o in r['tupleq']['rounds'][0]} == {'late-recv', 'both'} and $options.endswith('--link off')" \
	'Late receiver .send side., at least 90 % from 64 KiB: ' \
	overlap --variants --no-link --rounds 1 --columns tupleq -- --side late-recv,both --sizes 64K --step-ms 1 "${short[@]}"
