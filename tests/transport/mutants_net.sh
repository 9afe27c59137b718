#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The same for the rules of net/ and ep/, which no model has: takes them out one at a time (mutants_net/*.patch; the first line says
# what is wrong then, the second one which test sees it: "# caught by [OPTION of softhca run...] -- PROGRAM [ARGUMENT...]"), builds
# libtupleq with that, and expects the test to fail, or not to end. mutants_net.sh [NAME...]. The test programs in $TEST_BUILD and
# softhca in PATH are as they are; CC and CFLAGS are taken from the environment.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
programs=${TEST_BUILD:?the build tree, with its test programs}/tests/transport/.libs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
deadline=25            # seconds; without a mutant each test takes a few
export MANY_DEADLINE=8 # of these, for one operation
tries=3                # of a mutant: where two processes are to meet at a point, they may miss each other

# compile SOURCE OBJECT INCLUDE
compile() {
	# shellcheck disable=SC2086 # CFLAGS are several words
	${CC:-cc} -std=gnu11 -D_GNU_SOURCE -fPIC -w ${CFLAGS:--O1 -g} -I"$3" -I"$top/include" -c "$1" -o "$2"
}

# link OBJECTS LIBRARY
link() {
	${CC:-cc} -shared -Wl,-soname,libtupleq.so.0 "-Wl,--version-script=$top/src/transport/tupleq.map" "$1"/*.o -o "$2" -libverbs -pthread
}

# build DIRECTORY SOURCES FILE...: libtupleq there, of the FILEs as they are in SOURCES and else as in the original.
build() {
	local dir=$1 sources=$2 file name
	shift 2

	mkdir -p "$dir/objects"
	[ "$dir" = "$work/plain" ] || cp -l "$work"/plain/objects/*.o "$dir/objects"
	for file in "$@"; do
		name=${file#"$sources/"}
		name=$dir/objects/${name/\//-}.o
		rm -f "$name"
		compile "$file" "$name" "$sources"
	done
	link "$dir/objects" "$dir/libtupleq.so.0"
}

# changed PATCH SOURCES: the files that are to be compiled again: all, if a header is among those that the patch changes.
changed() {
	if grep -q '^+++ .*\.h$' "$1"; then
		printf '%s\n' "$2"/{base,proto,net,ep}/*.c
	else
		sed -n "s|^+++ b/|$2/|p" "$1"
	fi
}

# try DIRECTORY COMMAND [OUT]: with the libtupleq there. What it says goes to OUT, DIRECTORY/out.
try() {
	local options program

	read -ra options <<<"${2%%-- *}"
	read -ra program <<<"${2#*-- }"
	LD_LIBRARY_PATH=$1${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout -k 5 "$deadline" softhca run "${options[@]}" -- \
		"$programs/${program[0]}" "${program[@]:1}" >"${3:-$1/out}" 2>&1
}

# what_failed OUT: what is seen there first.
what_failed() {
	grep -m1 '^not ok' "$1" || grep -m1 '^#' "$1" || echo "it doesn't end"
}

# judge PATCH NAME: prints the line, true if the mutant is found.
judge() {
	local dir=$work/$2 test n files

	mkdir "$dir"
	cp -r "$top/src/transport" "$dir/source"
	if ! patch -s -f -p1 -F 3 -d "$dir/source" <"$1" >/dev/null; then
		echo "not ok mutant $2 - the patch doesn't apply: the rule's code has changed"
		return 1
	fi
	mapfile -t files < <(changed "$1" "$dir/source")
	build "$dir" "$dir/source" "${files[@]}"
	test=$(test_of "$1")
	for ((n = 1; n <= tries; n++)); do
		try "$dir" "$test" && continue
		# Not for want of memory, time or anything else that it has here?
		if ! try "$work/plain" "$test" "$dir/without"; then
			echo "not ok mutant $2 - without it, \"$test\" fails, too: $(what_failed "$dir/without")"
			return 1
		fi
		echo "ok mutant $2 ($test: $(what_failed "$dir/out")$([ "$n" = 1 ] || echo ", try $n"))"
		rm -rf "$dir"
		return
	done
	echo "not ok mutant $2 - not found by \"$test\""
	return 1
}

# test_of PATCH
test_of() {
	sed -n '2s/^# caught by //p' "$1"
}

build "$work/plain" "$top/src/transport" "$top"/src/transport/{base,proto,net,ep}/*.c
# Most of the time they wait for something that doesn't come: several side by side.
jobs=()
for patch in "$here"/mutants_net/*.patch; do
	[ $# -eq 0 ] || [[ " $* " == *" $(basename "$patch" .patch) "* ]] || continue
	[ ${#jobs[@]} -lt 8 ] || {
		wait "${jobs[0]}" || status=1
		jobs=("${jobs[@]:1}")
	}
	judge "$patch" "$(basename "$patch" .patch)" &
	jobs+=($!)
done
for job in "${jobs[@]}"; do
	wait "$job" || status=1
done
exit $status
