# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group fuzz: random messages from a peer to libtupleq, and to the provider of libfabric. Sourced by run.sh.

takes fuzz 25
needs fuzz make libibverbs-dev uthash-dev "${fuzz_packages[@]}"

# First come the inputs of the corpora, which once showed bugs or reach much code. Then comes a little fuzzing, the same each time.
# tests/ADDING.md says how to fuzz for longer.
group_fuzz() {
	local out=${build:-$top/build}/fuzz target

	echo "Building the fuzz targets"
	logged "$log_dir/make.out" make -C "$top" -f tests/fuzz/Makefile -j"$(nproc)" O="$out" ||
		die "the build of the fuzz targets failed"
	for target in protocol network libfabric; do
		if [ ! -x "$out/fuzz_$target" ]; then
			skip "$target" "libfabric-dev isn't installed"
			continue
		fi
		wanted "$target corpus" && pass_or_fail "$target corpus" 120 "$top/tests/fuzz/run.sh" "$out" "$target" 0
		wanted "$target fuzzing" &&
			pass_or_fail "$target fuzzing" 300 "$top/tests/fuzz/run.sh" "$out" "$target" 3000
	done
	return 0
}
