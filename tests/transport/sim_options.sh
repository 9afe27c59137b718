#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# sim_options.sh PROGRAM - checks that PROGRAM (sim_exhaustive) refuses names that no case has, and a trace of no case or of two.
set -uo pipefail

out=$(mktemp)
trap 'rm -f "$out"' EXIT
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$out
program=$1

# refuses TEXT ARGUMENT...: returns true if the program ends with status 2 and prints the text.
refuses() {
	local text=$1 status=0
	shift
	"$program" "$@" >"$out" 2>&1 || status=$?
	[ "$status" -eq 2 ] && grep -qxF -- "$text" "$out"
}

check "sim_exhaustive: an unknown case" refuses "There is no case hitherto." hitherto
check "sim_exhaustive: an unknown case and a known one" refuses "There is no case hitherto." --limit 1 one-tuple hitherto
check "sim_exhaustive: an unknown option" refuses "There is no case --bogus." --bogus 1
check "sim_exhaustive: a trace of no case" refuses "--trace needs one case." --trace 0
check "sim_exhaustive: a trace of two cases" refuses "--trace needs one case." --trace 0 one-tuple first-is-long
exit "$bad"
