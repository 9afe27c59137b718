#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mutants_net.sh [NAME...] - as mutants.sh, for the rules of net/ and ep/, which no model has. Takes the rules out one at a time, as the
# files of mutants_net/ say, builds libtupleq with the bug, and expects the test that the file names to fail, or not to end. The test
# programs are those in $TEST_BUILD, softhca is in PATH, and CC and CFLAGS come from the environment.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
programs=${TEST_BUILD:?the build tree, with its test programs}/tests/transport/.libs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
deadline=25            # seconds for a test, which takes a few without a mutant
export MANY_DEADLINE=8 # seconds of these for one operation
tries=3                # for a mutant, because two processes that are to meet at a point may miss each other

# shellcheck source=tests/transport/mutants_lib.sh
. "$here/mutants_lib.sh"

# link OBJECTS LIBRARY
link() {
	${CC:-cc} -shared -Wl,-soname,libtupleq.so.0 "-Wl,--version-script=$top/src/transport/tupleq.map" "$1"/*.o -o "$2" -libverbs -pthread
}

# build DIRECTORY SOURCES FILE...: builds libtupleq in DIRECTORY with the FILEs in SOURCES, and the other files as in the original.
build() {
	local dir=$1 sources=$2 file name
	shift 2

	mkdir -p "$dir/objects"
	[ "$dir" = "$work/plain" ] || cp -l "$work"/plain/objects/*.o "$dir/objects"
	for file in "$@"; do
		name=${file#"$sources/"}
		name=$dir/objects/${name//\//-}.o
		rm -f "$name"
		compile "$file" "$name" "$sources" -fPIC || return 1
	done
	link "$dir/objects" "$dir/libtupleq.so.0"
}

# to_compile SOURCES CHANGED...: prints the files to compile again: all files if a header has changed.
to_compile() {
	local sources=$1
	shift

	if [[ "$*" = *.h* ]]; then
		printf '%s\n' "$sources"/{base,proto,proto/*,net,net/*,ep}/*.c
	else
		printf '%s\n' "${@/#/$sources/}"
	fi
}

# try DIRECTORY COMMAND [OUT]: runs a test with the libtupleq of DIRECTORY. Its output goes to OUT (DIRECTORY/out).
try() {
	local options program

	read -ra options <<<"${2%%-- *}"
	read -ra program <<<"${2#*-- }"
	LD_LIBRARY_PATH=$1${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout -k 5 "$deadline" softhca run "${options[@]}" -- \
		"$programs/${program[0]}" "${program[@]:1}" >"${3:-$1/out}" 2>&1
}

# what_failed OUT: prints the first line that shows a failure.
what_failed() {
	grep -m1 '^not ok' "$1" || grep -m1 '^#' "$1" || echo "it doesn't end"
}

# judge NAME: prints the result. True if the mutant is caught.
judge() {
	local dir=$work/$1 test n changed files

	test=$(sed -n 's/^caught: //p' "$here/mutants_net/$1")
	if [ -z "$test" ]; then
		echo "not ok mutant $1 - no line \"caught: ...\" names a test"
		return 1
	fi
	mkdir "$dir"
	cp -r "$top/src/transport" "$dir/source"
	if ! changed=$(python3 "$here/mutate.py" apply "$dir/source" "$here/mutants_net/$1" 2>&1); then
		echo "not ok mutant $1 - $changed"
		return 1
	fi
	mapfile -t changed <<<"$changed"
	mapfile -t files < <(to_compile "$dir/source" "${changed[@]}")
	if ! build "$dir" "$dir/source" "${files[@]}"; then
		echo "not ok mutant $1 - the mutant can't be built"
		return 1
	fi
	for ((n = 1; n <= tries; n++)); do
		try "$dir" "$test" && continue
		# The test may also fail without the mutant, because this machine lacks memory or time.
		if ! try "$work/plain" "$test" "$dir/without"; then
			echo "not ok mutant $1 - without it, \"$test\" fails, too: $(what_failed "$dir/without")"
			return 1
		fi
		echo "ok mutant $1 ($test: $(what_failed "$dir/out")$([ "$n" = 1 ] || echo ", try $n"))"
		rm -rf "$dir"
		return
	done
	echo "not ok mutant $1 - not found by \"$test\""
	return 1
}

build "$work/plain" "$top/src/transport" "$top"/src/transport/{base,proto,proto/*,net,net/*,ep}/*.c
# Most tests only wait for something that doesn't come, so several run side by side.
judge_all "$here/mutants_net" 8 "$@"
