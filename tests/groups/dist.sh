# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group dist: the ways in which a release is built, installed and packaged. Sourced by run.sh.

takes dist 310
needs dist "${dist_packages[@]}" clang

group_dist() {
	plain_build
	wanted manual && pass_or_fail manual 60 "$top/tests/manual.sh" "$build"
	if wanted contents; then
		if [ -e "$top/.git" ]; then
			pass_or_fail contents 120 "$top/tests/contents.sh" "$build"
		else
			skip contents "this is no git checkout"
		fi
	fi
	wanted packages && pass_or_fail packages 600 "$top/tests/packages.sh" "$build"
	wanted install && pass_or_fail install 300 "$top/tests/install.sh" "$build"
	wanted clang && pass_or_fail clang 900 "$top/tests/clang.sh"
	wanted distcheck && pass_or_fail distcheck 900 make -C "$build" -j "$(nproc)" distcheck
	return 0
}
