#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# installed.sh FOLDER: installs all Debian packages of the folder, and uses them as an ordinary user who sets nothing. The machine stays
# as it is: this runs in a root whose changes are in memory. Needs root, and leave to mount file systems.
set -euo pipefail

fail() {
	echo "$*"
	exit 1
}

# enter FOLDER: runs this script again in a copy of the machine's root, with copies of its script and its packages in /mnt.
enter() {
	local tests

	tests=$(cd "$(dirname "$0")" && pwd)
	# shellcheck disable=SC2016 # the inner shell's
	exec unshare --mount --pid --fork --kill-child --propagation unchanged bash -c '
		set -e
		mount --make-rprivate / 2>/dev/null || true # a root by chroot is no mount, and debian13.sh has made its mounts private
		mount -t tmpfs tmpfs /mnt
		mkdir /mnt/packages /mnt/upper /mnt/work /mnt/root
		cp "$1"/*.deb "$2/installed.sh" "$2/examples.sh" /mnt/packages
		chmod -R a+rX /mnt
		mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
		mount --bind /mnt/packages /mnt/root/mnt
		mount -t proc proc /mnt/root/proc
		mount --rbind /sys /mnt/root/sys
		mount --rbind /dev /mnt/root/dev
		mount -t tmpfs tmpfs /mnt/root/dev/shm
		mount -t tmpfs tmpfs /mnt/root/tmp
		exec chroot /mnt/root /usr/bin/env -i LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin bash /mnt/installed.sh --inside
	' - "$1" "$tests"
}

# finds COMMAND...: checks that the command's processes know the PML, with no word on standard error.
finds() {
	local said what="$* mpirun"

	said=$("$@" mpirun -n 1 ompi_info --parsable 2>/tmp/complaints)
	[ ! -s /tmp/complaints ] || fail "${what# } complains: $(cat /tmp/complaints)"
	[[ $said == *mca:pml:tupleq:* ]] || fail "${what# } finds no component of TupleQ; the path is: $("$@" mpirun -n 1 env | grep component_path)"
}

# Uses the packages, with nothing of theirs in the environment.
use() {
	local unset=(env -u OMPI_MCA_mca_base_component_path -u PMIX_MCA_mca_base_component_path)

	finds
	finds softhca run --
	cp -r /usr/share/doc/tupleq/examples ~/examples
	make -s -C ~/examples
	# Without the path that softhca gives to Open MPI, as with an adapter.
	softhca run --nodes 2 -- "${unset[@]}" OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \
		mpirun -n 2 --mca pml tupleq ~/examples/overlap >/tmp/said 2>/tmp/complaints || fail "$(cat /tmp/said /tmp/complaints)"
	[ ! -s /tmp/complaints ] || fail "mpirun --mca pml tupleq complains: $(cat /tmp/complaints)"
	grep -q '^receiving 1048576 bytes' /tmp/said || fail "$(cat /tmp/said)"
	softhca run -- env -u FI_PROVIDER_PATH fi_info -p tupleq >/tmp/said 2>/tmp/complaints || fail "$(cat /tmp/said /tmp/complaints)"
	grep -qx 'provider: tupleq' /tmp/said && [ ! -s /tmp/complaints ] || fail "fi_info says: $(cat /tmp/said /tmp/complaints)"
	# A path of the user's own counts.
	[[ $(OMPI_MCA_mca_base_component_path=SYSTEM_DEFAULT mpirun -n 1 env) == *component_path=SYSTEM_DEFAULT* ]] ||
		fail "mpirun takes no path from the environment"
	bash /mnt/examples.sh
}

case ${1?which folder has the packages?} in
--inside) ;;
--use)
	use
	exit
	;;
*)
	if [ "$(id -u)" = 0 ] && unshare --mount --propagation unchanged true 2>/dev/null; then
		enter "$1"
	fi
	echo "ok packages as their user has them # SKIP installing them needs root, and leave to mount file systems"
	exit
	;;
esac

cd /
dpkg --install /mnt/*.deb >/tmp/log 2>&1 || fail "$(cat /tmp/log)"
useradd --create-home newcomer
setpriv --reuid=newcomer --regid=newcomer --init-groups --reset-env env LC_ALL=C.UTF-8 bash /mnt/installed.sh --use

# Files of other packages are theirs again when the packages have gone.
for package in /mnt/*.deb; do
	dpkg-deb -f "$package" Package
done | xargs dpkg --purge >/tmp/log 2>&1 || fail "$(cat /tmp/log)"
owner=$(dpkg-query -S '*/pmix-mca-params.conf*' 2>/dev/null | grep -v :\ /etc | sort) || true
[ "$(wc -l <<<"$owner")" -le 1 ] && [[ $owner != *diversion* ]] || fail "the packages leave: $owner"
[ -z "$owner" ] || dpkg --verify "${owner%%: *}" || fail "PMIx has not its own files again"
