#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_instructions.sh - the instructions of an 8-byte message, through libibverbs, counted by callgrind: no kind of
# message takes more than its budget. Prints the table by step. SOFTHCA is the program, TEST_BUILD the build.
set -uo pipefail
softhca=${SOFTHCA:?set it to the path of softhca}
program=${TEST_BUILD:?set it to the build}/tests/softhca/instructions
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# shellcheck source=tests/check.sh
. "$here/../check.sh"
evidence=$tmp/table

# count FUNCTION: its instructions a message, with all that it calls.
count() {
	awk -v name="$1" -v messages="$messages" \
		'index($0, ":" name " ") || index($0, ":" name "'"'"'") { gsub(",", "", $1); print int($1 / messages + 0.5); exit }' \
		"$tmp/annotated"
}

# within_budget BUDGET TYPE INLINE POSTS: a message takes no more instructions than BUDGET.
within_budget() {
	local budget=$1 total=0 step instructions messages

	shift
	"$softhca" run -- valgrind --tool=callgrind --callgrind-out-file="$tmp/counts" --toggle-collect='window_*' \
		"$program" "$@" >"$tmp/table" 2>&1 || return 1
	messages=$(awk '/^messages/ { print $2 }' "$tmp/table")
	callgrind_annotate --inclusive=yes --threshold=100 "$tmp/counts" >"$tmp/annotated" 2>>"$tmp/table" || return 1
	: >"$tmp/table"
	for step in posts_receives posts_sends polls_sends polls_receives; do
		instructions=$(count "window_$step")
		[ -n "$instructions" ] || return 1
		total=$((total + instructions))
		printf '%s %d, ' "${step//_/ }" "$instructions" >>"$tmp/table"
	done
	echo "total $total of $budget" >>"$tmp/table"
	echo "# $*: $(cat "$tmp/table")"
	[ "$total" -gt 0 ] && [ "$total" -le "$budget" ]
}

for tool in valgrind callgrind_annotate; do
	if ! command -v "$tool" >/dev/null; then
		echo "ok instructions # SKIP there is no $tool"
		exit 0
	fi
done
while read -r budget kind; do
	# shellcheck disable=SC2086 # several words
	check "instructions of a message: $kind" within_budget "$budget" $kind
done <<-END
	2360 rc copied one
	2000 rc copied list
	2300 rc inline one
	2360 srq copied one
	2360 xrc copied one
	2300 xrc inline one
	1950 xrc inline list
END
exit "$bad"
