#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mutants.sh [NAME...] - checks that each rule of the protocol is needed and tested. Takes the rules out one at a time, as the files of
# mutants/ say, and expects the simulations to find the bug. CC, CFLAGS and RUNS (random runs) come from the environment.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runs=${RUNS:-1000}
sims=(sim model model_memory model_srqs hca program world invariants users entries oracle explore runner cases cases_new cases_direct cases_rules traffic)

# shellcheck source=tests/transport/mutants_lib.sh
. "$here/mutants_lib.sh"

# link DIRECTORY: links the simulations with the protocol of that directory.
link() {
	local p

	for p in sim_random sim_exhaustive unit_handles; do
		${CC:-cc} "$work/sim/$p.o" "${sim_objects[@]}" "$1"/*.o -o "$1/$p" -pthread
	done
}

# repeats LINE PROGRAM [CASE]: true if the run that failed fails again, with the options that the line names.
repeats() {
	local options

	options=$(sed -n 's/.*(\(--trace [^)]*\)).*/\1/p' <<<"$1")
	shift
	# shellcheck disable=SC2086 # several words
	{ ! timeout 60 "$1" $options "${@:2}"; } >/dev/null 2>&1
}

# in_random_runs NAME DIRECTORY: true if one in 200 of the random runs shows the bug, so that those of group transport, which are
# thousands, find it for sure; of a mutant bits-*, of those with match bits. Prints the result then.
in_random_runs() {
	local out of failed breaks why bits=0 with=('' ' with failures')

	[[ $1 != bits-* ]] || bits=1
	for breaks in 0 1; do
		out=$("$2/sim_random" --runs "$runs" --max-failed "$runs" --coverage 0 --bits $bits --break $breaks || true)
		failed=$(sed -n 's/^not ok .* - \([0-9]*\) of .*/\1/p' <<<"$out")
		of=$(sed -n 's/.* of \([0-9]*\) runs fail.*/\1/p' <<<"$out")
		if [ "${failed:-0}" -gt 0 ] && [ $((failed * 200)) -ge "$of" ]; then
			why=$(sed 's/.*seed [0-9]*: //; s/ (--trace.*//' <<<"$out")
			if repeats "$out" "$2/sim_random"; then
				echo "ok mutant $1 (in $failed of $of runs${with[breaks]}: $why)"
			else
				echo "not ok mutant $1 - the run doesn't fail again: $out"
			fi
			return 0
		fi
	done
	return 1
}

# look NAME DIRECTORY: prints the result. True if the mutant in the directory is caught.
look() {
	local out only case

	if ! out=$("$2/unit_handles"); then
		echo "ok mutant $1 ($(grep -m1 '^not ok' <<<"$out"))"
		return
	fi
	# A mutant whose rule random runs seldom need names the case that needs it.
	only=$(sed -n 's/^case: //p' "$here/mutants/$1")
	if [ -z "$only" ] && out=$(in_random_runs "$@"); then
		echo "$out"
		[[ $out = ok* ]]
		return
	fi
	# shellcheck disable=SC2086 # no case, or one
	out=$("$2/sim_exhaustive" --limit 20000 --any 1 $only || true)
	case=$(sed -n 's/^not ok exhaustive \([^ ]*\) - .* (--trace.*/\1/p' <<<"$out")
	if [ -n "$case" ] && repeats "$out" "$2/sim_exhaustive" "$case"; then
		echo "ok mutant $1 ($(sed -n 's/^not ok exhaustive \([^ ]*\) - \(.*\) (--trace.*/in case \1: \2/p' <<<"$out"))"
	elif [ -n "$case" ]; then
		echo "not ok mutant $1 - the case doesn't fail again: $(grep '^not ok' <<<"$out")"
		return 1
	else
		echo "not ok mutant $1 - not found"
		return 1
	fi
}

# judge NAME: makes the mutant and looks for it. Compiles the files that the mutant changes, and all files if it changes a header.
judge() {
	local dir=$work/$1 changed files file

	mkdir -p "$dir"
	cp -r "$top/src/transport/base" "$top/src/transport/proto" "$dir/"
	if ! changed=$(python3 "$here/mutate.py" apply "$dir" "$here/mutants/$1" 2>&1); then
		echo "not ok mutant $1 - $changed"
		return 1
	fi
	cp -r "$work/plain" "$dir/objects"
	mapfile -t files <<<"$changed"
	[[ "${files[*]}" != *.h* ]] || files=("${sources[@]}")
	for file in "${files[@]}"; do
		if ! compile "$dir/$file" "$dir/objects/$(basename "$file" .c).o" "$dir"; then
			echo "not ok mutant $1 - the mutant can't be compiled"
			return 1
		fi
	done
	link "$dir/objects"
	look "$1" "$dir/objects" || return 1
	rm -rf "$dir"
}

mkdir -p "$work/sim" "$work/plain"
sim_objects=()
for s in "${sims[@]}" sim_random sim_exhaustive unit_handles; do
	compile "$here/$s.c" "$work/sim/$s.o" "$top/src/transport"
	[[ $s = sim_* || $s = unit_* ]] || sim_objects+=("$work/sim/$s.o")
done
cd "$top/src/transport"
sources=(base/{handles,params,stats}.c proto/*.c proto/*/*.c)
for s in "${sources[@]}"; do
	compile "$s" "$work/plain/$(basename "$s" .c).o" .
done

judge_all "$here/mutants" "$(nproc)" "$@"
