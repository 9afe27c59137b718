#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# clang.sh: builds everything, tests and benchmarks included, with clang and without a warning, and runs the units. Then configures the
# built tree again with another --prefix, and checks that the installed files use that prefix.
set -euo pipefail
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/setup.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset SOFTHCA_LIBRARY LD_LIBRARY_PATH TUPLEQ_BUILD OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path
mkdir "$dir/build"
cd "$dir/build"
clang --version | head -n 1
# With optimisation, because frames of functions are bounded only then.
"$top/configure" -q CC=clang --enable-werror --prefix="$dir/one"
make -s -j"$(nproc)" all check-programs bench
for unit in $(unit_programs '*'); do
	"./$unit"
done
"$top/configure" -q CC=clang --enable-werror --prefix="$dir/two"
make -s -j"$(nproc)"
make -s install
if grep -rlaF "$dir/one" "$dir/two"; then
	echo "these still name the first prefix"
	exit 1
fi
"$dir/two/bin/softhca" run -- ibv_devinfo
