#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# clang.sh: builds all installed parts with clang, without a warning.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
# Unlike gcc's, clang's warnings don't depend on optimisation.
"$top/configure" -q CC=clang CFLAGS=-O0 --enable-werror
make -s -j"$(nproc)"
