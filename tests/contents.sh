#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# contents.sh BUILD: checks that the archive of "make dist" has each file of the repository, but for git's own. Needs a git checkout.
set -euo pipefail
build=$1
top=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

make -s -C "$build" distdir distdir="$tmp/archive" >"$tmp/log" 2>&1 || { cat "$tmp/log" && exit 1; }
missing=$(comm -23 <(git -C "$top" ls-files ':!.gitignore' | sort) <(cd "$tmp/archive" && find . -type f -printf '%P\n' | sort))
[ -z "$missing" ] || { printf 'not in the archive, so name them in EXTRA_DIST:\n%s\n' "$missing" && exit 1; }
