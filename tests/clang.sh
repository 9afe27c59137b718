#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# clang.sh: all that is installed is built by the other compiler without a warning.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
"$top/configure" -q CC=clang --enable-werror
make -s -j"$(nproc)"
