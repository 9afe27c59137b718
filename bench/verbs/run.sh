#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The verbs benchmark on softhca; bench/run.sh verbs calls this with the build tree's environment (build/env.sh).
# Options go to verbs_bench (see --help). SOFTHCA_RUN_OPTIONS holds further options of `softhca run`.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
program=${TUPLEQ_BUILD:+$TUPLEQ_BUILD/bench/verbs/verbs_bench}
results=$here/../results
bench=$here/..
# shellcheck source=bench/words.sh
. "$bench/words.sh"

# built: succeeds if the program is there.
built() {
	[ -f "$program" ] && [ -x "$program" ]
}

case ${1-} in
-h | --help)
	! built || exec "$program" --help
	sed -n '3,/^set/{/^#/s/^# //p}' "$0"
	exit 0
	;;
esac
check_words verbs "$@"
if ! built; then
	echo "verbs: verbs_bench isn't built; start this as bench/run.sh verbs, or run \"make bench\" and source build/env.sh" >&2
	exit 1
fi
if ! command -v softhca >/dev/null; then
	echo "verbs: softhca isn't found; source build/env.sh first" >&2
	exit 1
fi

# The caller's --output, if any, comes last and wins.
mkdir -p "$results"
results=$(cd "$results" && pwd)
# The usual limit of registered memory, 8 MiB, would refuse the two largest buffers.
# shellcheck disable=SC2086 # a list of options
exec softhca run --memlock unlimited ${SOFTHCA_RUN_OPTIONS-} -- "$program" --output "$results/verbs.json" "$@"
