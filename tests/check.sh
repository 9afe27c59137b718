# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034 # $status is the exit status of the scripts that source this
# What shell tests share: a check with a line of result. Sourced.

status=0  # 1: a check failed
evidence= # a file that a failed check shows

# check NAME COMMAND...: prints "ok NAME" or "not ok NAME", by the command's exit status.
check() {
	local name=$1
	shift
	if "$@"; then
		echo "ok $name"
	else
		echo "not ok $name"
		[ -z "$evidence" ] || sed 's/^/# /' "$evidence"
		status=1
	fi
}
