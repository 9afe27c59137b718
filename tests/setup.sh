# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by tests/run.sh, bench/run.sh and others: Debian packages, and builds below build/.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

die() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# need_packages PACKAGE...: installs the missing packages if the user is root. If not, says how, and ends.
need_packages() {
	local missing=() p

	command -v dpkg-query >/dev/null || return 0
	for p; do
		[[ " ${missing[*]} " != *" $p "* ]] || continue
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "$(id -u)" = 0 ] || die "packages are missing; run: sudo apt-get install ${missing[*]}"
	echo "These packages are missing, and are installed now by apt-get: ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -qq update </dev/null &&
		apt-get -qq install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null ||
		die "apt-get could not install: ${missing[*]}"
}

# Parts of the names of packages that differ between Debian 12 and 13.
petsc_release=3.22 tcmalloc=libtcmalloc-minimal4t64
if grep -qsx 'VERSION_ID="12"' /etc/os-release; then
	petsc_release=3.18 tcmalloc=libtcmalloc-minimal4
fi

# shellcheck disable=SC2034 # used by those who source this
{
	build_packages=(gcc libc6-dev make autoconf automake libtool pkg-config libibverbs-dev libjansson-dev uthash-dev
		libopenmpi-dev libfabric-dev)
	test_packages=(libcmocka-dev ibverbs-utils libfabric-bin python3 openmpi-bin openssh-client)
	mpi_packages=(openmpi-bin openssh-client libjemalloc2 "$tcmalloc" gnuplot-nox libfftw3-dev)
	client_packages=(ibverbs-providers ibverbs-utils infiniband-diags perftest ucx-utils openmpi-bin openssh-client netpipe-openmpi hpcc)
	rdmacm_packages=(ibverbs-providers librdmacm-dev rdmacm-utils perftest qperf libfabric-bin python3-pyverbs
		fio netpipe-tcp libucx-dev ucx-utils librpma-dev)
	program_packages=(openmpi-bin openssh-client libopenmpi-dev gcc netpipe-openmpi hpcc lammps scalapack-mpi-test
		libmumps-dev libpetsc-real-dev "libpetsc$petsc_release-dev-examples" pkg-config python3 python3-mpi4py)
	fuzz_packages=(clang libclang-rt-dev)
	lint_packages=(clang-format cppcheck shellcheck pyflakes3 mandoc rpm rpmlint)
	dist_packages=(ibverbs-utils libfabric-bin openmpi-bin openssh-client libopenmpi-dev mandoc build-essential chrpath debhelper dpkg-dev fakeroot)
}

# logged FILE COMMAND...: runs a command quietly, and shows its output only if it fails.
logged() {
	local log=$1
	shift
	mkdir -p "$(dirname "$log")"
	"$@" >"$log" 2>&1 </dev/null && return 0
	tail -n 60 "$log" >&2
	return 1
}

# unit_programs FOLDER...: prints the units of folders of tests, as tests/FOLDER/unit_NAME. The folder "*" stands for all.
unit_programs() {
	local folder source

	for folder; do
		# shellcheck disable=SC2231 # a folder may be a pattern
		for source in "$top"/tests/$folder/unit_*.c; do
			source=${source#"$top/"}
			echo "${source%.c}"
		done
	done
}

# Prints the folder with the sources for a build below build/. A checkout that is configured in place can't be built elsewhere, so
# the folder is then a copy with the files of a release.
source_dir() {
	if [ ! -e "$top/config.status" ]; then
		echo "$top"
		return
	fi
	mkdir -p "$top/build"
	logged "$top/build/source.log" make -C "$top" distdir distdir=build/source ||
		die "the checkout is configured in place and can't be copied; run 'make distclean' there"
	echo "$top/build/source"
}

# build_tree DIRECTORY TARGETS [OPTION of configure...]: brings a build up to date.
build_tree() {
	local dir=$1 targets=$2 src
	shift 2
	src=$(source_dir)
	if [ ! -x "$src/configure" ]; then
		logged "$top/build/autogen.log" "$top/autogen.sh" || die "autoreconf failed"
	fi
	mkdir -p "$dir"
	if [ "$(cat "$dir/configured" 2>/dev/null)" != "$src $*" ]; then
		(cd "$dir" && logged configure.out "$src/configure" -q "$@") || die "configure failed in $dir"
		echo "$src $*" >"$dir/configured"
	fi
	# shellcheck disable=SC2086 # a list of targets
	logged "$dir/make.out" make -C "$dir" -j"$(nproc)" $targets || die "the build failed in $dir"
}
