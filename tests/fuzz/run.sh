#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh BUILD TARGET RUNS [LIBFUZZER-OPTION...] - runs a target on its corpus, then RUNS times on inputs that the fuzzer derives
# from the corpus, the same each time. A failing input is kept in BUILD/found, and named.
set -euo pipefail

case ${1-} in
-h | --help)
	sed -n '3,/^set/{/^#/s/^# //p}' "$0"
	exit 0
	;;
esac
if [ $# -lt 3 ]; then
	echo "run.sh: BUILD, TARGET and RUNS are needed; --help explains them" >&2
	exit 1
fi
folder=$(cd "$(dirname "$0")" && pwd)
build=$1 target=$2 runs=$3
shift 3

mkdir -p "$build/found"
# For the endpoint's files and new inputs. The inputs are not kept: the next run begins where this one did.
TMPDIR=$(mktemp -d)
trap 'rm -rf "$TMPDIR"' EXIT
# (libinfinipath, a library below libfabric, would write backtraces to files.)
export IPATH_NO_BACKTRACE=1
export TMPDIR ASAN_OPTIONS=allocator_may_return_null=1:handle_abort=1 UBSAN_OPTIONS=print_stacktrace=1

corpus=("$folder/corpus/$target"/*)
if [ "$runs" -eq 0 ]; then
	"$build/fuzz_$target" -timeout=100 -artifact_prefix="$build/found/$target-" "$@" "${corpus[@]}"
else
	mkdir "$TMPDIR/new"
	"$build/fuzz_$target" -seed=1 -use_cmp=0 -reload=0 -runs="$runs" -max_len=400 -timeout=100 -artifact_prefix="$build/found/$target-" "$@" \
		"$TMPDIR/new" "$folder/corpus/$target"
fi
