#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Does the same as mutants.sh for the rules of net/ and ep/, which no model has: takes them out one at a time, as the files of
# mutants_net/ say, builds libtupleq with that, and expects the test that the file names to fail, or not to end:
# mutants_net.sh [NAME...]. The test programs in $TEST_BUILD and softhca in PATH are as they are; CC and CFLAGS are taken from the
# environment.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
programs=${TEST_BUILD:?the build tree, with its test programs}/tests/transport/.libs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
deadline=25            # seconds; without a mutant each test takes a few
export MANY_DEADLINE=8 # of these, for one operation
tries=3                # of a mutant: where two processes are to meet at a point, they may miss each other

# compile SOURCE OBJECT INCLUDE
compile() {
	# shellcheck disable=SC2086 # CFLAGS are several words
	${CC:-cc} -std=gnu11 -D_GNU_SOURCE -fPIC -w ${CFLAGS:--O1 -g} -I"$3" -I"$top/include" -c "$1" -o "$2"
}

# shellcheck source=tests/transport/mutants_lib.sh
. "$here/mutants_lib.sh"

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
		compile "$file" "$name" "$sources" || return 1
	done
	link "$dir/objects" "$dir/libtupleq.so.0"
}

# to_compile SOURCES CHANGED...: the files that are to be compiled again: all, if a header is among those that have changed.
to_compile() {
	local sources=$1
	shift

	if [[ "$*" = *.h* ]]; then
		printf '%s\n' "$sources"/{base,proto,net,ep}/*.c
	else
		printf '%s\n' "${@/#/$sources/}"
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

# judge NAME: prints the line, true if the mutant is found.
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
		# Not for want of memory, time or anything else that it has here?
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

build "$work/plain" "$top/src/transport" "$top"/src/transport/{base,proto,net,ep}/*.c
# Most of the time they wait for something that doesn't come: several side by side.
judge_all "$here/mutants_net" 8 "$@"
