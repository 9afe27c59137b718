#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# packages.sh BUILD: builds the Debian packages from the files of a release, installs them in a temporary root, and uses them there; and
# then on the machine as its user does (installed.sh). The machine's own packages stay as they are.
set -euo pipefail

build=$(cd "$1" && pwd)
top=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset SOFTHCA_LIBRARY LD_LIBRARY_PATH TUPLEQ_BUILD FI_PROVIDER_PATH OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path

fail() {
	echo "$*"
	exit 1
}

make -s -C "$build" distdir distdir="$dir/tupleq" >"$dir/log" 2>&1 || fail "$(tail -n 40 "$dir/log")"
version=$(sed -n 's/^AC_INIT(\[TupleQ\], \[\([^]]*\)\].*/\1/p' "$top/configure.ac")
(cd "$dir/tupleq" && DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" dpkg-buildpackage -b -us -uc) >"$dir/log" 2>&1 ||
	fail "$(tail -n 60 "$dir/log")"

# Each file belongs to one package: debhelper refuses files that belong to none, and dpkg refuses a file of two packages.
wanted="libfabric-tupleq libportals-dev libportals0 libtupleq-dev libtupleq0 openmpi-tupleq softhca tupleq-check tupleq-doc"
there=$(for deb in "$dir"/*.deb; do dpkg-deb -f "$deb" Package; done | sort | xargs)
[ "$there" = "$wanted" ] || fail "the packages are: $there"
mkdir -p "$dir/root/var/lib/dpkg/info" "$dir/root/var/lib/dpkg/updates"
: >"$dir/root/var/lib/dpkg/status"
# Their dependencies are on the machine, not in the root, which can't run their scripts either.
dpkg --root="$dir/root" --force-depends --force-not-root --force-script-chrootless --install "$dir"/*.deb >"$dir/log" 2>&1 ||
	fail "$(cat "$dir/log")"
for package in $wanted; do
	state=$(dpkg-query --admindir="$dir/root/var/lib/dpkg" -W -f='${db:Status-Status} ${Version}' "$package")
	[ "$state" = "installed $version" ] || fail "$package is $state"
done

# depends PACKAGE NAME: checks that the package depends on another one, which its files need.
depends() {
	dpkg-query --admindir="$dir/root/var/lib/dpkg" -W -f='${Depends}' "$1" | grep -w -- "$2" >/dev/null || fail "$1 doesn't depend on $2"
}
depends libtupleq0 libibverbs1
depends libtupleq-dev libtupleq0
depends libfabric-tupleq libtupleq0
depends libfabric-tupleq libfabric1
depends libportals0 libtupleq0
depends libportals-dev libportals0
depends openmpi-tupleq libtupleq0
depends softhca libjansson4
depends tupleq-check libibverbs1
depends tupleq-check python3

usr=$dir/root/usr
lib=$usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
components=$(echo "$lib"/openmpi/lib/openmpi*)
# Open MPI's folder has the name of its package.
depends openmpi-tupleq "lib$(basename "$components")"
for framework in pml coll btl; do
	[ -e "$components/mca_${framework}_tupleq.so" ] || fail "openmpi-tupleq lacks mca_${framework}_tupleq.so"
done
"$usr/bin/softhca" --version | grep -x "softhca $version" >/dev/null
SOFTHCA_LIBRARY=$lib/softhca/libsofthca.so "$usr/bin/softhca" run --nodes 2 -- ibv_devinfo | grep softhca0 >/dev/null
SOFTHCA_LIBRARY=$lib/softhca/libsofthca.so "$usr/bin/softhca" run -- "$usr/bin/tupleq-check" --no-prices | grep -x "softhca0 port 1: works" >/dev/null
LD_LIBRARY_PATH=$lib FI_PROVIDER_PATH=$lib/libfabric SOFTHCA_LIBRARY=$lib/softhca/libsofthca.so "$usr/bin/softhca" run -- \
	fi_info -p tupleq | grep -x "provider: tupleq" >/dev/null || fail "fi_info doesn't show the provider of libfabric-tupleq"
for page in man1/softhca.1 man1/tupleq-check.1 man1/tupleq-report.1 man3/libportals.3 man3/libtupleq.3 man7/fi_tupleq.7 man7/softhca.7 man7/tupleq.7; do
	gzip -dc "$usr/share/man/$page.gz" | mandoc -T lint -W error
done
SOFTHCA_LIBRARY=$lib/softhca/libsofthca.so "$top/tests/examples.sh" "$usr" "$lib" "$components"
# The texts have links to each other.
packed=$(find "$usr/share/doc/tupleq" -name '*.gz')
[ -z "$packed" ] || fail "nobody can build or follow these as they are: $packed"
while read -r target; do
	[ -e "$usr/share/doc/tupleq/$target" ] || fail "README.md of tupleq-doc shows $target, which no package has"
done < <(sed -n 's/.*!\[[^]]*\](\([^)]*\)).*/\1/p' "$usr/share/doc/tupleq/README.md")

# The packages leave nothing when they are purged.
# shellcheck disable=SC2086 # several words
dpkg --root="$dir/root" --force-not-root --force-script-chrootless --purge $wanted >"$dir/log" 2>&1 || fail "$(cat "$dir/log")"
left=$(find "$dir/root" -path "$dir/root/var/lib/dpkg" -prune -o ! -type d -print)
[ -z "$left" ] || fail "the packages leave $left"
left=$(dpkg-divert --admindir "$dir/root/var/lib/dpkg" --list)
[ -z "$left" ] || fail "the packages leave a $left"

"$top/tests/installed.sh" "$dir"
