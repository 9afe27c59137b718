#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The tests in Debian 13, with its Open MPI 5.0, as root: tests/debian13.sh [GROUP [NAME...]], as tests/run.sh takes them.
# mmdebstrap makes its root in build/debian13, which stays for the next time: remove the folder for a fresh one.
set -euo pipefail
# shellcheck source=tests/setup.sh
. "$(dirname "$0")/setup.sh"

root=$top/build/debian13
default_groups=(unit softhca transport mpi)

usage() {
	cat <<END
Usage: tests/debian13.sh [GROUP [NAME...]]
Makes a Debian 13 in build/debian13, unless it is there, and runs tests/run.sh in it, on a copy of the sources; what GROUP and NAME are says
tests/run.sh --help. Without one it runs: ${default_groups[*]}. Needs root, and 2 GB.
END
}

make_root() {
	[ ! -e "$root/etc/debian_version" ] || return 0
	need_packages mmdebstrap
	echo "Making a Debian 13 in $root"
	logged "$top/build/debian13.log" mmdebstrap --variant=minbase --include=ca-certificates trixie "$root.new" ||
		die "mmdebstrap could not make $root.new; it says why in build/debian13.log"
	mv "$root.new" "$root"
}

# Neither what autoreconf made here nor a build.
copy_sources() {
	local src
	src=$(source_dir)
	mkdir -p "$root/tupleq"
	tar -C "$src" -c --exclude=./build --exclude=./.git --exclude=./configure --exclude=./aclocal.m4 --exclude=./autom4te.cache \
		--exclude=./build-aux --exclude=./Makefile.in --exclude='./m4/l*.m4' . | tar -C "$root/tupleq" -x
}

# in_root COMMAND...: there, with mounts that go with it.
in_root() {
	# shellcheck disable=SC2016 # the inner shell's
	unshare --mount --propagation private bash -c '
		set -e
		root=$1
		shift
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		mount --rbind /sys "$root/sys"
		exec chroot "$root" /usr/bin/env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
	' - "$root" "$@"
}

case ${1-} in
-h | --help) usage && exit 0 ;;
-*) die "there is no option $1; there is --help, and GROUP [NAME...]" ;;
esac
[ "$(id -u)" = 0 ] || die "it mounts and changes the root, so only root can run it; run: sudo tests/debian13.sh"
[ $# -gt 0 ] || set -- "${default_groups[@]}"
make_root
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
copy_sources
in_root /tupleq/tests/run.sh "$@"
