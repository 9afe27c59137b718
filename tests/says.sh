# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034 # the script reads "bad"
# Shared by usage.sh and newcomer.sh.

# says STATUS TEXT COMMAND...: checks that the command ends with this status and that its output has the text. If not, says so and
# sets bad=1.
says() {
	local wanted=$1 text=$2 said status=0
	shift 2
	said=$("$@" 2>&1) || status=$?
	[ "$status" -eq "$wanted" ] || { echo "$*: status $status, not $wanted" && bad=1; }
	case $said in *"$text"*) ;; *) echo "$*: it doesn't say \"$text\" but: $said" && bad=1 ;; esac
}
