# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group check: tupleq-check on adapters that lack something, and tupleq-report. Sourced by run.sh.

takes check 25

group_check() {
	local t

	plain_build
	for t in "$top"/tests/check/test_*.sh; do
		wanted "$(basename "$t")" || continue
		run "$(basename "$t")" 200 env TEST_BUILD="$build" "$t"
	done
}
