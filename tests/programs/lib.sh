# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034 # variables are used by those who source this
# Shared by the scripts here. Each is called as NAME RANKS [ARGUMENT...] -- MPIRUN OPTION..., runs a program of another project in a
# directory of its own, checks the program's answers, and prints a line for each check.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ranks=$1
shift
args=()
while [ "$1" != -- ]; do
	args+=("$1")
	shift
done
shift
mpirun=("$@")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
# shellcheck source=tests/check.sh
. "$here/../check.sh"

# The ranks are processes, so they need no more threads.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

# has COUNT PATTERN FILE: true if at least COUNT lines match.
has() {
	[ "$(grep -cE -- "$2" "$3")" -ge "$1" ]
}

# lacks PATTERN FILE
lacks() {
	! grep -E -- "$1" "$2"
}

# run_logged FILE COMMAND...
run_logged() {
	local log=$1
	shift
	"$@" >"$log" 2>&1
}
