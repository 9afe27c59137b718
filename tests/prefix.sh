#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# prefix.sh: configures a built tree again with another --prefix, and checks that the installed files use that prefix.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset SOFTHCA_LIBRARY LD_LIBRARY_PATH TUPLEQ_BUILD OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path
mkdir "$dir/build"
cd "$dir/build"
for prefix in one two; do
	"$top/configure" -q CFLAGS=-O0 --disable-lto --prefix="$dir/$prefix"
	make -s -j"$(nproc)"
done
make -s install
if grep -rlaF "$dir/one" "$dir/two"; then
	echo "these still name the first prefix"
	exit 1
fi
"$dir/two/bin/softhca" run -- ibv_devinfo
