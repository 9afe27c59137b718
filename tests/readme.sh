#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# readme.sh: README.md is a page, and what it and the other files of the front door point to is there. (tests/manual.sh
# checks that the manual names all parameters.)
set -euo pipefail
cd "$(dirname "$0")/.."
status=0
page=100 # lines
lines=$(wc -l <README.md)
[ "$lines" -le "$page" ] || { echo "README.md has $lines lines, more than a page of $page" && status=1; }
for file in README.md CONTRIBUTING.md NEWS.md SECURITY.md examples/README.md; do
	while read -r target; do
		[ -e "$(dirname "$file")/$target" ] || { echo "$file points to $target, which isn't there" && status=1; }
	done < <(grep -oE '\]\([^)#]+' "$file" | cut -c3- | grep -v '^https\?:')
done
exit "$status"
