#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# readme.sh: README.md is no longer than a page and names the packages that a build needs, the links of the READMEs for users lead somewhere, and tests/README.md names every
# script of the tests. (tests/manual.sh checks that the manual names all parameters.)
set -euo pipefail
cd "$(dirname "$0")/.."
status=0
page=100 # lines
lines=$(wc -l <README.md)
[ "$lines" -le "$page" ] || { echo "README.md has $lines lines, more than a page of $page" && status=1; }

# libtool brings the compiler and the headers of the C library.
# shellcheck source=tests/setup.sh
. tests/setup.sh
for package in "${build_packages[@]}" openmpi-bin; do
	[[ $package == gcc || $package == libc6-dev ]] || sed -n '/^A build needs /,/^$/p' README.md | grep -q "[\` ]${package}[\` ]" ||
		{ echo "README.md doesn't say that a build needs $package" && status=1; }
done

for file in README.md CONTRIBUTING.md NEWS.md SECURITY.md examples/README.md; do
	while read -r target; do
		[ -e "$(dirname "$file")/$target" ] || { echo "$file points to $target, which isn't there" && status=1; }
	done < <(grep -oE '\]\([^)#]+' "$file" | cut -c3- | grep -v '^https\?:')
done

# By its name or, like all of its folder, as "FOLDER/*.sh"; or in the README of its folder.
for script in tests/*.sh tests/*/*.sh; do
	folder=$(dirname "$script")
	grep -qsF -e "$(basename "$script")" -e "${folder#tests/}/*.sh" tests/README.md "$folder/README.md" ||
		{ echo "tests/README.md doesn't name $script" && status=1; }
done
exit "$status"
