# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034 # $bad is the exit status of the scripts that source this
# Shared by shell tests: a check with a line of result.

bad=0     # 1: a check failed
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
		bad=1
	fi
}

# within COMMAND...: repeats the command until it succeeds, for ten seconds at most.
within() {
	local end=$((SECONDS + 10))

	until "$@"; do
		if [ "$SECONDS" -gt "$end" ]; then
			echo "# gave up waiting for: $*"
			return 1
		fi
		sleep 0.02
	done
}
