#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# clang.sh: all that is installed is built by the other compiler without a warning.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
# Its warnings don't depend on what it optimises.
"$top/configure" -q CC=clang CFLAGS=-O0 --enable-werror
make -s -j"$(nproc)"
