#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# versions.sh: checks that the histories begin with the version in configure.ac, that the numbers in the names of the libraries' packages
# and of their maps' nodes are those of their interfaces, and that no other file has a version of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0

# same WHAT FOUND WANTED: complains if a version is another one than configure.ac has.
same() {
	[ "$2" = "$3" ] || { echo "$1: \"$2\", where configure.ac says \"$3\"" && status=1; }
}

# interface NAME: prints the soname version of the interface NAME in configure.ac. Ends the script if there is none.
interface() {
	local current age

	IFS=: read -r current _ age < <(sed -n "s/^AC_SUBST(\[$1\], \[\(.*\)\])\$/\1/p" configure.ac) ||
		{ echo "configure.ac has no AC_SUBST([$1], [CURRENT:REVISION:AGE])" >&2 && exit 1; }
	echo $((current - age))
}

version=$(sed -n 's/^AC_INIT(\[TupleQ\], \[\([^]]*\)\].*/\1/p' configure.ac)
same "the newest entry of NEWS.md" "$(sed -n 's/^## //p' NEWS.md | head -n 1)" "$version"
same "the newest entry of debian/changelog" "$(sed -n '1s/^tupleq (\([^)]*\)).*/\1/p' debian/changelog)" "$version"
while read -r name library node map pc; do
	soname=$(interface "$name")
	same "the package of $library in debian/control" "$(sed -n "s/^Package: \(${library}[0-9]*\)\$/\1/p" debian/control)" "$library$soname"
	same "the node in $map" "$(sed -n "s/^\(${node}_[0-9]*\) {\$/\1/p" "$map" | head -n 1)" "${node}_$soname"
	[ -e "debian/$library$soname.install" ] || { echo "there is no debian/$library$soname.install" && status=1; }
	grep -q "^Version: @VERSION@$" "$pc" || { echo "$pc has a version of its own" && status=1; }
done <<-END
	TUPLEQ_INTERFACE libtupleq TUPLEQ src/transport/tupleq.map src/transport/tupleq.pc.in
	PORTALS_INTERFACE libportals PORTALS4 src/portals/portals.map src/portals/portals4.pc.in
END
grep -q "^Version: *@PACKAGE_VERSION@$" tupleq.spec.in || { echo "tupleq.spec.in has a version of its own" && status=1; }
! grep -rn "define TUPLEQ_MAJOR" ompi-btl || { echo "an Open MPI component has a version of its own" && status=1; }
exit "$status"
