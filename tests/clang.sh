#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# clang.sh: builds everything, tests and benchmarks included, with clang and without a warning, and runs the units.
set -euo pipefail
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/setup.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
clang --version | head -n 1
# With optimisation, because frames of functions are bounded only then.
"$top/configure" -q CC=clang --enable-werror
make -s -j"$(nproc)" all check-programs bench
for unit in $(unit_programs '*'); do
	"./$unit"
done
