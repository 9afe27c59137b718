# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Groups asan and tsan: the suites, built with sanitizers. Sourced by run.sh.

takes asan 0 295
takes tsan 0 375
needs asan "${build_packages[@]}" "${test_packages[@]}"
needs tsan "${build_packages[@]}" "${test_packages[@]}"

# sanitized NAME CONFIGURE-VALUE RUNTIME VARIABLE=FLAGS MPI-FLAGS: runs the suites with a sanitizer. MPI-FLAGS are for MPI programs only,
# in which Open MPI's own libraries are not instrumented. The launcher puts libsofthca first in LD_PRELOAD. This does no harm if the
# sanitizer's runtime comes right behind it, in front of the C library, but AddressSanitizer has to be told so. (gcc's warnings of
# truncation depend on its optimiser, so only the build at -O2 uses them.)
sanitized() {
	local -x UBSAN_OPTIONS=print_stacktrace=1
	local name=$1 value=$2 preload flags=$4 mpi_flags=$5

	in_full "group $name: the suites with a sanitizer" || return 0
	preload=LD_PRELOAD=$(gcc -print-file-name="$3")
	# In a subshell: a build that fails ends this group, not the run.
	if ! (make_build "$top/build/$name" --enable-sanitizer="$value" CFLAGS="-O1 -g -Wno-format-truncation"); then
		failed=$((failed + 1))
		fails+=("$name: the build")
		return 0
	fi
	(
		side_by_side
		use_build "$top/build/$name"
		run_units "$name: " "softhca mpi portals libfabric" "$flags"
		run_list softhca "suite*.list" "$name: " "$flags" "$preload"
		run_list softhca variants.list "$name: " "$flags" "$preload"
		# The simulations have one thread, so there are no races.
		[ "$name" = tsan ] || run_sims "$name: " 10000 200 1 "$flags"
		[ "$name" = tsan ] || ! wanted sim_lists ||
			run "$name: sim_lists" 300 env "$flags" "$build/tests/portals/sim_lists" --runs 2000 --limit 300
		run_list transport suite.list "$name: " "$flags" "$preload"
		[ ! -e "$build/src/libfabric/libtupleq-fi.la" ] ||
			run_list libfabric sanitized.list "$name: " "$flags" "$preload"
		# hwloc reads a list of all PCI devices with a realloc() for each, which takes seconds in each process here.
		run_mpi mpi/sanitized.list "$name: " "$flags$mpi_flags" "$preload" HWLOC_COMPONENTS=-pci
		in_turn
		save_totals
	)
	load_totals
}

# Hand the totals of a subshell to the shell that started it.
save_totals() {
	declare -p passed failed skipped skips left_out fails | sed 's/^declare -- //; s/^declare -a //' >"$log_dir/totals"
}
load_totals() {
	# shellcheck disable=SC1091 # written by save_totals
	. "$log_dir/totals"
}

# Includes UndefinedBehaviorSanitizer.
group_asan() {
	sanitized asan address,undefined libasan.so ASAN_OPTIONS=verify_asan_link_order=0:abort_on_error=1 \
		":detect_leaks=0:suppressions=$top/tests/mpi/asan.supp"
}

# A forked child that opens a device starts an engine thread, which die_after_fork=0 allows. The history is long because suppressions
# need the stack of an access that may be long past.
group_tsan() {
	sanitized tsan thread libtsan.so TSAN_OPTIONS="halt_on_error=1:atexit_sleep_ms=50:die_after_fork=0:second_deadlock_stack=1:history_size=5" \
		":ignore_noninstrumented_modules=1:suppressions=$top/tests/mpi/tsan.supp"
}
