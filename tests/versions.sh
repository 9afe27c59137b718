#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# versions.sh: checks that the histories begin with the version in configure.ac, that the number in the names of libtupleq's packages
# is that of its interface, and that no other file has a version of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0

# same WHAT FOUND WANTED: complains if a version is another one than configure.ac has.
same() {
	[ "$2" = "$3" ] || { echo "$1: \"$2\", where configure.ac says \"$3\"" && status=1; }
}

version=$(sed -n 's/^AC_INIT(\[TupleQ\], \[\([^]]*\)\].*/\1/p' configure.ac)
IFS=: read -r current _ age < <(sed -n 's/^AC_SUBST(\[TUPLEQ_INTERFACE\], \[\(.*\)\])$/\1/p' configure.ac)
soname=$((current - age))
same "the newest entry of NEWS.md" "$(sed -n 's/^## //p' NEWS.md | head -n 1)" "$version"
same "the newest entry of debian/changelog" "$(sed -n '1s/^tupleq (\([^)]*\)).*/\1/p' debian/changelog)" "$version"
same "the library's package in debian/control" "$(sed -n 's/^Package: \(libtupleq[0-9]*\)$/\1/p' debian/control)" "libtupleq$soname"
same "the node in tupleq.map" "$(sed -n 's/^\(TUPLEQ_[0-9]*\) {$/\1/p' src/transport/tupleq.map | head -n 1)" "TUPLEQ_$soname"
[ -e "debian/libtupleq$soname.install" ] || { echo "there is no debian/libtupleq$soname.install" && status=1; }
grep -q "^Version: *@PACKAGE_VERSION@$" tupleq.spec.in || { echo "tupleq.spec.in has a version of its own" && status=1; }
grep -q "^Version: @VERSION@$" src/transport/tupleq.pc.in || { echo "tupleq.pc.in has a version of its own" && status=1; }
! grep -rn "define TUPLEQ_MAJOR" ompi-btl || { echo "an Open MPI component has a version of its own" && status=1; }
exit "$status"
