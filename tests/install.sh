#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# install.sh BUILD [ROOT]: checks that the installed files work without the build tree. Without ROOT the script installs with
# DESTDIR. "make installcheck" gives the prefix as ROOT, also in "make distcheck", which thus tests a prefix. ("make install
# prefix=..." is not possible: libtool can't relink libraries that depend on one another.)
set -euo pipefail

build=$1
top=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# A user doesn't have the build tree's environment.
unset SOFTHCA_LIBRARY LD_LIBRARY_PATH TUPLEQ_BUILD FI_PROVIDER_PATH OMPI_MCA_mca_base_component_path PMIX_MCA_mca_base_component_path

files=(bin/softhca bin/tupleq-check bin/tupleq-report share/man/man1/tupleq-check.1 share/man/man1/tupleq-report.1 lib/softhca/libsofthca.so lib/softhca/libsofthca-clock.so share/man/man1/softhca.1
	share/softhca/profiles/paper.profile share/softhca/profiles/hdr.profile share/man/man7/softhca.7
	share/man/man3/libtupleq.3 share/man/man7/tupleq.7 share/doc/tupleq/README.md share/doc/tupleq/examples/pingpong.c
	lib/libtupleq.so include/tupleq/tupleq.h include/tupleq/match.h include/tupleq/look_up.h lib/pkgconfig/tupleq.pc
	lib/libportals.so include/portals4.h lib/pkgconfig/portals4.pc share/man/man3/libportals.3)
[ ! -e "$build/src/libfabric/libtupleq-fi.la" ] || files+=(lib/libfabric/libtupleq-fi.so share/man/man7/fi_tupleq.7)
frameworks=() # of Open MPI, for which there are components
if [ -e "$build/ompi-btl/mca_pml_tupleq.la" ]; then
	frameworks=(pml coll btl)
	files+=(lib/openmpi/mca_pml_tupleq.so lib/openmpi/mca_coll_tupleq.so lib/openmpi/mca_btl_tupleq.so)
fi

fail() {
	echo "$*"
	exit 1
}

# exports LIBRARY NAME...: checks that the library has these dynamic symbols and no others.
exports() {
	local library=$1
	shift
	diff -u --label "wanted of $(basename "$library")" --label "there" <(printf '%s\n' "$@" | sort) \
		<(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
}

# links ROOT MODULE HEADER FAILURE: builds a program with the flags of MODULE.pc, which fails if FAILURE holds, and runs it. (The
# file names the configured prefix.)
links() {
	local root=$1 module=$2 header=$3 failure=$4 flags

	cat >"$dir/user.c" <<-END
		#include <$header>
		int main(void)
		{
			return $failure;
		}
	END
	flags=$(PKG_CONFIG_PATH="$root/lib/pkgconfig" pkg-config --define-prefix --cflags --libs "$module")
	case $flags in *"$root/include"*"$root/lib"*) ;; *) fail "$module.pc names other folders: $flags" ;; esac
	# shellcheck disable=SC2086 # several words
	${CC:-cc} -std=c99 -Wall -Wextra -Werror "$dir/user.c" -o "$dir/user" $flags
	LD_LIBRARY_PATH="$root/lib" "$dir/user"
}

# loads ROOT FRAMEWORK: checks that Open MPI loads the component.
loads() {
	local root=$1 framework=$2 info

	info=$(LD_LIBRARY_PATH="$root/lib" OMPI_MCA_mca_base_component_path="SYSTEM_DEFAULT:$root/lib/openmpi" \
		ompi_info --parsable --param "$framework" tupleq --level 9)
	case $info in *"mca:$framework:tupleq:"*) ;; *) fail "ompi_info doesn't know the $framework component of $root" ;; esac
}

# runs ROOT: checks that mpirun under softhca's launcher finds the components by itself, without a complaint.
runs() {
	local root=$1 info

	info=$("$root/bin/softhca" run -- env LD_LIBRARY_PATH="$root/lib" \
		mpirun --allow-run-as-root -n 1 ompi_info --parsable 2>"$dir/complaints")
	case $info in *mca:pml:tupleq:*mca:*) ;; *) fail "softhca run doesn't tell mpirun where the components of $root are" ;; esac
	test ! -s "$dir/complaints" || fail "mpirun complains: $(cat "$dir/complaints")"
}

# provides ROOT: checks that libfabric under softhca's launcher finds the provider by itself.
provides() {
	local root=$1

	"$root/bin/softhca" run -- env LD_LIBRARY_PATH="$root/lib" fi_info -p tupleq >"$dir/provider" 2>&1 &&
		grep -qx 'provider: tupleq' "$dir/provider" || fail "fi_info doesn't show the provider of $root: $(cat "$dir/provider")"
}

# told ROOT: checks that mpirun alone finds the components with the variables that tupleq(7) names, without a complaint.
told() {
	local root=$1 info

	info=$(LD_LIBRARY_PATH="$root/lib" OMPI_MCA_mca_base_component_path="SYSTEM_DEFAULT:$root/lib/openmpi:USER_DEFAULT" \
		PMIX_MCA_mca_base_component_path="$(pkg-config --silence-errors --variable=libdir pmix)/pmix" \
		mpirun --allow-run-as-root -n 1 ompi_info --parsable 2>"$dir/complaints")
	case $info in *mca:pml:tupleq:*mca:*) ;; *) fail "mpirun doesn't find the components of $root as tupleq(7) says" ;; esac
	test ! -s "$dir/complaints" || fail "mpirun complains: $(cat "$dir/complaints")"
}

# finds LIBRARY: checks that the component or provider has the path of libtupleq below the build's prefix.
finds() {
	local prefix

	prefix=$(sed -n 's/^prefix = //p' "$build/Makefile")
	readelf -d "$1" | grep -E "R(UN)?PATH.*(\[|:)$prefix/lib(\]|:)" >/dev/null || fail "$1 has no path to libtupleq, and depends on the loader's cache"
}

# check ROOT: checks an installation. (grep reads to the end, because with -q a writer that has more to say may die of SIGPIPE.)
check() {
	local root=$1 file symbols framework

	for file in "${files[@]}"; do
		test -f "$root/$file" || fail "$root/$file is missing"
	done
	# Libraries that are only loaded need no libtool files.
	file=$(find "$root/lib/softhca" "$root/lib/libfabric" "$root/lib/openmpi" -name '*.la' 2>/dev/null)
	test -z "$file" || fail "nobody links to the library of $file"
	if grep -Eq '@(OPTIONS|COLUMNS)@|\(null\)' "$root/share/man/man1/softhca.1"; then
		fail "the manual page lacks options or columns"
	fi
	"$root/bin/softhca" --version
	"$root/bin/softhca" run --nodes 2 -- ibv_devinfo
	"$root/bin/softhca" options --profile hdr | grep -E '^part-id +4123 +profile' >/dev/null || fail "softhca of $root doesn't find the profile hdr"
	"$root/bin/softhca" run -- "$root/bin/tupleq-check" --no-prices | grep -x "softhca0 port 1: works" >/dev/null ||
		fail "tupleq-check of $root doesn't work"
	"$root/bin/softhca" run -- "$root/bin/tupleq-report" --no-prices | grep -x "softhca0 port 1: works" >/dev/null ||
		fail "tupleq-report of $root doesn't work"
	mapfile -t symbols < <(sed -n 's/^\t\(tq_[a-z_]*\);$/\1/p' "$top/src/transport/tupleq.map")
	exports "$root/lib/libtupleq.so" "${symbols[@]}"
	mapfile -t symbols < <(sed -n 's/^\t\(Ptl[A-Za-z]*\);$/\1/p' "$top/src/portals/portals.map")
	exports "$root/lib/libportals.so" "${symbols[@]}"
	if [ -e "$root/lib/libfabric/libtupleq-fi.so" ]; then
		exports "$root/lib/libfabric/libtupleq-fi.so" fi_prov_ini
		finds "$root/lib/libfabric/libtupleq-fi.so"
		provides "$root"
	fi
	links "$root" tupleq tupleq/tupleq.h '!tq_param_desc(0)'
	links "$root" portals4 portals4.h 'PtlAtomicSync() != PTL_NO_INIT'
	for framework in "${frameworks[@]}"; do
		exports "$root/lib/openmpi/mca_${framework}_tupleq.so" "mca_${framework}_tupleq_component"
		finds "$root/lib/openmpi/mca_${framework}_tupleq.so"
		loads "$root" "$framework"
	done
	[ ${#frameworks[@]} -eq 0 ] || { runs "$root" && told "$root"; }
	"$top/tests/examples.sh" "$root"
}

if [ $# -gt 1 ]; then
	check "$2"
	exit
fi
make -C "$build" install DESTDIR="$dir/dest" >/dev/null
check "$dir/dest$(sed -n 's/^prefix = //p' "$build/Makefile")"
make -C "$build" uninstall DESTDIR="$dir/dest" >/dev/null
left=$(find "$dir/dest" ! -type d)
test -z "$left" || fail "make uninstall leaves $left"
