#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_profile.sh - profiles of adapters: the shipped ones, files, what wins against them, and files that are wrong. SOFTHCA is the
# program.
set -uo pipefail
SOFTHCA=${SOFTHCA:?set it to the path of softhca}
unset "${!SOFTHCA_@}"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export HOME=$dir XDG_CONFIG_HOME=$dir SOFTHCA_CONFIG=$dir/softhca.conf
: >"$SOFTHCA_CONFIG"
out=$dir/out
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$out
shipped=$(cd "$(dirname "$0")/../../src/softhca/profiles" && pwd)

# has "NAME VALUE FROM" [OPTION of softhca run...]: returns true if the option has this value from there.
has() {
	local wanted=$1
	shift
	"$SOFTHCA" options "$@" >"$out" 2>&1 && tr -s ' ' <"$out" | grep -qE -- "^$wanted "
}

# refuses TEXT NAME: returns true if a run with this profile ends with this sentence alone.
refuses() {
	local status=0
	"$SOFTHCA" run --profile "$2" -- true >"$out" 2>&1 || status=$?
	echo "status $status" >>"$out"
	[ "$status" -eq 2 ] && [ "$(wc -l <"$out")" -eq 2 ] && grep -qF -- "$1" "$out"
}

# bad TEXT LINE...: checks that a file with these lines is refused with this sentence.
bad() {
	local text=$1
	shift
	printf '%s\n' "$@" >"$dir/bad.profile"
	check "a wrong file: $text" refuses "$text" "$dir/bad.profile"
}

# sourced FILE: returns true if each value has words behind it, or, as the link, a comment above it.
sourced() {
	awk '/^[a-z]/ && !/ # / && !above { print FILENAME ":" FNR ": " $0; missing = 1 } { above = /^#/ } END { exit missing }' "$1" >"$out"
}

for file in "$shipped"/*.profile; do
	name=$(basename "$file" .profile)
	check "$name is shipped" has "profile $name command line" --profile "$name"
	check "$name has a link" has "link latency=[^ ]* profile" --profile "$name"
	check "$name has sources" sourced "$file"
	# shellcheck disable=SC2016 # the inner shell's
	check "$name makes a fabric" "$SOFTHCA" run --profile "$name" -- sh -c 'test -n "$SOFTHCA_FABRIC"'
	check "$name is in the manual page" grep -q "^\.It Cm $name\$" "$shipped/../man/softhca.1.in"
	check "$name is in the help" grep -q "shipped (.*\<$name\>.*)" "$shipped/../fabric/options.def"
done
check "values" has "part-id 4123 profile" --profile hdr
check "a limit above softhca's" has "max-srq 131072 profile" --profile hdr
check "no profile" has "part-id 4119 default"

printf 'price-post = 70ns # measured\n\n# a comment\nmax-srq=9\nmax-msg-sz = 9223372036854775807\n' >"$dir/my.profile"
check "a file" has "price-post 70ns profile" --profile "$dir/my.profile"
check "a file: a limit" has "max-srq 9 profile" --profile "$dir/my.profile"
check "a file: bytes above softhca's" has "max-msg-sz 2G profile" --profile "$dir/my.profile"
check "a file: the rest" has "price-recv 40ns default" --profile "$dir/my.profile"
# A shipped name wins against a file of that name; a path doesn't.
cp "$dir/my.profile" "$dir/hdr"
check "a file beside a shipped one" env -C "$dir" "$SOFTHCA" options --profile hdr >"$out"
check "the shipped one counts" grep -Eq '^part-id +4123 +profile' "$out"
check "its path" has "max-srq 9 profile" --profile "$dir/hdr"

check "the command line wins" has "price-post 1us command line" --profile "$dir/my.profile" --price-post 1us
check "the environment wins" env SOFTHCA_PRICE_POST=2us "$SOFTHCA" options --profile "$dir/my.profile" >"$out"
check "its value" grep -Eq '^price-post +2us +environment' "$out"
check "named by the environment" env SOFTHCA_PROFILE=hdr "$SOFTHCA" options >"$out"
check "its value" grep -Eq '^part-id +4123 +profile' "$out"
printf 'profile = ndr\nprice-post = 3us\n' >"$SOFTHCA_CONFIG"
check "named by the configuration file" has "part-id 4129 profile"
check "which wins, too" has "price-post 3us file"
check "another one on the command line" has "part-id 4123 profile" --profile hdr
: >"$SOFTHCA_CONFIG"

check "an unknown name" refuses 'There is no profile "hdrr": name a file, or one of edr, hdr, ndr, paper.' hdrr
check "no file" refuses "There is no profile \"$dir/none\": name a file" "$dir/none"
check "a folder" refuses "The profile $dir can't be read: Is a directory." "$dir"
check "not a text" refuses "/dev/zero:1: not a text file." /dev/zero
bad 'bad.profile:2: there is no option "prise-post": see softhca options.' 'price-recv = 1ns' 'prise-post = 1ns'
bad 'bad.profile:1: "price-post" is not of the form "name = value".' 'price-post'
bad 'bad.profile:3: "fast" is not a value of price-post: use a time from 0ns to 1s' '' '' 'price-post = fast'
bad 'bad.profile:1: "-5" is not a value of max-qp: use a whole number from 1 to 131072.' 'max-qp = -5'
bad 'bad.profile:1: "many" is not a value of max-srq' 'max-srq = many'
bad 'bad.profile:1: "latency=fast" is not a value of link' 'link = latency=fast'
for option in nodes devices profile memlock fault-drop trace clock clock-cpu; do
	bad "bad.profile:1: $option doesn't describe an adapter, so a profile can't set it: use --$option" "$option = 1"
done
exit "$bad"
