#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# spec.sh: checks that rpm understands the spec file, with and without Open MPI, that its package has all components, and that rpmlint
# finds no error in it.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
version=$(sed -n 's/^AC_INIT(\[TupleQ\], \[\([^]]*\)\].*/\1/p' configure.ac)
sed "s/@PACKAGE_VERSION@/$version/" tupleq.spec.in >"$dir/tupleq.spec"
for with in without with; do
	rpmspec -q --"$with" openmpi --qf '%{name} %{version}\n' "$dir/tupleq.spec" >"$dir/$with"
	for package in tupleq softhca tupleq-check libtupleq libtupleq-devel libfabric-tupleq; do
		grep -qx "$package $version" "$dir/$with" || { echo "no package $package in: $(cat "$dir/$with")" && exit 1; }
	done
done
grep -qx "openmpi-tupleq $version" "$dir/with"
for component in $(sed -n 's/^ompicomponent_LTLIBRARIES = //p' ompi-btl/Makefile.inc); do
	file=$(basename "$component" .la).so
	grep -q "^%{ompi_home}/.*/$file$" tupleq.spec.in || { echo "openmpi-tupleq lacks $file" && exit 1; }
done
grep -q '^%{_libdir}/libfabric/libtupleq-fi.so$' tupleq.spec.in || { echo "libfabric-tupleq lacks the provider" && exit 1; }
# A rule of one distribution, which has another name for the library's package.
echo 'addFilter("lib-package-without-%mklibname")' >"$dir/rpmlintrc"
rpmlint -r "$dir/rpmlintrc" "$dir/tupleq.spec" >"$dir/said" 2>&1 || { cat "$dir/said" && exit 1; }
