#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# newcomer.sh - on a machine without packages and without root, help works, and the scripts name all missing packages at once and
# run nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/says.sh
. tests/says.sh
bad=0
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT

# Stand-ins for a machine without packages and for an ordinary user; and a folder with only the tools of a shell.
stub() {
	printf '#!/bin/sh\n%s\n' "$2" >"$bin/$1"
	chmod +x "$bin/$1"
}
stub id 'echo 1000'
stub dpkg-query 'echo not-installed'
stub apt-get 'echo apt-get ran; exit 1'
mkdir "$bin/tools"
for tool in bash sh sed dirname basename cat grep; do
	ln -s "$(command -v "$tool")" "$bin/tools"
done

for part in "" overlap picture all; do
	# shellcheck disable=SC2086 # no name is no word
	says 0 Benchmarks env PATH="$bin/tools" bash bench/run.sh $part --help
done
says 0 verbs env PATH="$bin/tools" bash bench/run.sh verbs --help
says 0 "runs one part" env PATH="$bin/tools" bash bench/mpi/run.sh --help
says 0 "The verbs benchmark" env PATH="$bin/tools" TUPLEQ_BUILD='' bash bench/verbs/run.sh --help
mkdir -p "$bin/build/bench/verbs/verbs_bench" # a folder is no program
says 0 "The verbs benchmark" env PATH="$bin/tools" TUPLEQ_BUILD="$bin/build" bash bench/verbs/run.sh --help
says 0 "Groups: lint" env PATH="$bin/tools" bash tests/run.sh --help
says 0 "Usage: tests/debian13.sh" env PATH="$bin/tools" bash tests/debian13.sh --help
says 0 "for aarch64" env PATH="$bin/tools" bash tests/aarch64.sh --help
says 0 "runs a target" env PATH="$bin/tools" bash tests/fuzz/run.sh --help
says 0 "creates ./configure" env PATH="$bin/tools" sh autogen.sh --help
says 1 "apt-get install autoconf" env PATH="$bin/tools" sh autogen.sh
says 1 "takes no options" sh autogen.sh --prefix=/usr
mkdir "$bin/autotools" # all that autogen.sh wants but make
for tool in autoconf automake libtoolize pkg-config; do
	ln -s "$(type -P true)" "$bin/autotools/$tool"
done
says 1 "these programs are missing: make" env PATH="$bin/tools:$bin/autotools" sh autogen.sh

# One sentence names the packages of the first group, lint, and of much later groups.
named=$(PATH=$bin:$PATH tests/run.sh 2>&1) && { echo "tests/run.sh runs without packages" && bad=1; }
for package in cppcheck libcmocka-dev libclang-rt-dev perftest lammps debhelper gcc; do
	[[ $named == *"sudo apt-get install"*" $package"* ]] || { echo "tests/run.sh doesn't name $package at once: $named" && bad=1; }
done
[ "$(wc -l <<<"$named")" -eq 1 ] || { echo "tests/run.sh begins without packages: $named" && bad=1; }
[ "$(grep -o ' libopenmpi-dev' <<<"$named" | wc -l)" -eq 1 ] || { echo "tests/run.sh names a package twice: $named" && bad=1; }
says 1 "sudo apt-get install" env PATH="$bin:$PATH" bench/run.sh

# Wrong words are answered first: packages wouldn't help.
says 1 "overlap has no option --hepl" env PATH="$bin:$PATH" bench/run.sh --hepl
says 2 "--rounds: wants a positive number" env PATH="$bin:$PATH" bench/run.sh latency --rounds 0
says 1 "verbs has no option --hepl" env PATH="$bin:$PATH" bench/run.sh verbs --hepl
says 1 "there is no group nothing" env PATH="$bin:$PATH" tests/run.sh nothing
says 1 "there is no group nothing" env PATH="$bin:$PATH" tests/debian13.sh nothing

# Root may use mpirun after ". env.sh", and reads why. Scripts and others read nothing.
# shellcheck disable=SC2016 # the inner shell's
allowed='. ./env.sh.in; echo "root: ${OMPI_ALLOW_RUN_AS_ROOT-no}${OMPI_ALLOW_RUN_AS_ROOT_CONFIRM-no}"'
as=(env -u OMPI_ALLOW_RUN_AS_ROOT -u OMPI_ALLOW_RUN_AS_ROOT_CONFIRM PATH="$bin:$PATH")
silent() {
	local said
	said=$("${as[@]}" sh -c "$allowed" 2>&1)
	[ "$said" = "root: $1" ] || { echo "env.sh says to a script of user $("$bin/id"): $said" && bad=1; }
}
silent nono
stub id 'echo 0'
silent 11
says 0 "You are root" "${as[@]}" sh -ic "$allowed"
says 0 "root: 0no" "${as[@]}" OMPI_ALLOW_RUN_AS_ROOT=0 sh -c "$allowed"
exit "$bad"
