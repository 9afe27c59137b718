#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# debian13.sh [GROUP [NAME...]] - runs tests/run.sh with these arguments, as root, in Debian 13 with its Open MPI 5.0. mmdebstrap
# makes the root file system in build/debian13 (or $DEBIAN13_ROOT), which stays for the next time. Remove that folder for a fresh one.
set -euo pipefail
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/setup.sh"

root=${DEBIAN13_ROOT:-$top/build/debian13}
# First the tests of what differs most between the releases, in case TEST_BUDGET doesn't suffice for all.
default_groups=(unit mpi programs clients libfabric rdmacm softhca dist transport)

usage() {
	cat <<END
Usage: tests/debian13.sh [GROUP [NAME...]]
Makes a Debian 13 in build/debian13, unless it exists, and runs tests/run.sh in it on a copy of the sources. tests/run.sh --help
explains GROUP and NAME. Without GROUP this runs: ${default_groups[*]}. Needs root, and 2 GB.
The exit status is 77 if the packages for that Debian can't be had.
With DEBIAN13_ROOT=DIR in the environment that Debian 13 is in DIR. TEST_BUDGET=SECONDS includes the time for making it.
END
}

make_root() {
	[ ! -e "$root/etc/debian_version" ] || return 0
	need_packages mmdebstrap
	echo "Making a Debian 13 in $root"
	rm -rf "$root.new"
	if ! logged "$top/build/debian13.log" mmdebstrap --mode=root --variant=minbase --include=ca-certificates trixie "$root.new"; then
		echo "mmdebstrap could not make $root.new; it says why in build/debian13.log"
		exit 77
	fi
	mv "$root.new" "$root"
}

# Copies the sources, without the files that autoreconf made here and without a build.
copy_sources() {
	local src
	src=$(source_dir)
	mkdir -p "$root/tupleq"
	tar -C "$src" -c --exclude=./build --exclude=./.git --exclude=./configure --exclude=./aclocal.m4 --exclude=./autom4te.cache \
		--exclude=./build-aux --exclude=./Makefile.in --exclude='./m4/l*.m4' . | tar -C "$root/tupleq" -x
}

# in_root COMMAND...: runs a command in that root, with mounts and processes that end with the command, and with shared memory of its own.
in_root() {
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount --pid --ipc --fork --kill-child --propagation private bash -c '
		set -e
		root=$1
		shift
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs tmpfs "$root/dev/shm"
		mount --rbind /sys "$root/sys"
		exec chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
	' - "$root" "$@"
}

case ${1-} in
-h | --help) usage && exit 0 ;;
-*) die "there is no option $1; there is --help, and GROUP [NAME...]" ;;
esac
"$top/tests/run.sh" --words "$@"
[ "$(realpath -m "$root")" != / ] || die "DEBIAN13_ROOT=$root is this system itself, and files there would be deleted: name a folder"
[ "$(id -u)" = 0 ] || die "this script mounts file systems and changes the root, for which it has to run as root: sudo tests/debian13.sh"
unshare --mount true 2>/dev/null || die "this root may not mount file systems, as in many containers: docker run --privileged allows it"
[ $# -gt 0 ] || set -- "${default_groups[@]}"
make_root
# Jobs that were killed leave folders there that are named after process numbers, which come again.
find "$root/tmp" -mindepth 1 -delete
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
copy_sources
in_root ${TEST_BUDGET:+TEST_BUDGET=$((TEST_BUDGET - SECONDS))} /tupleq/tests/run.sh "$@"
