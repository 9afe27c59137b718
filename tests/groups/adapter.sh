# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group adapter: the tests that need no softhca, on a device that --device names. Without that the device is softhca0, by the same path.
# Sourced by run.sh.

takes adapter 8 30

# on_device: prints the words in front of a command that give it the device: softhca makes its own adapters.
on_device() {
	case $device in softhca*) echo softhca run --memlock unlimited -- ;; esac
}

# check_device: says why tests can't run on the device, and ends. tupleq-check has the sentence, and what to do.
check_device() {
	local said

	# shellcheck disable=SC2046 # several words
	said=$($(on_device) tupleq-check --facts --device "$device" 2>&1) || die "the tests can't run on $device. $(tail -n 1 <<<"$said")"
}

# run_adapter_list ALL: runs the lines of adapter.list, and names the tests that need softhca, with the reason. Without ALL the longer
# ones run only with --long.
run_adapter_list() {
	local line program reason words on folder settings longer=

	read -ra on <<<"$(on_device)"
	while IFS= read -r line; do
		case $line in '# Longer.'*) longer=1 ;; esac
		case $line in '' | '#'*) continue ;; esac
		program=${line%% - *}
		wanted "$program" || continue
		[ -z "$longer" ] || [ -n "$1" ] || in_full "$program on softhca0" || continue
		case $line in
		*' - '*)
			reason=${line#* - }
			skip "$program" "needs softhca: $reason"
			continue
			;;
		esac
		read -ra words <<<"$program"
		settings=(TEST_DEVICE="$device")
		while [[ ${words[0]} == *=* ]]; do
			settings+=("${words[0]}")
			words=("${words[@]:1}")
		done
		run "$program" 300 env "${settings[@]}" "${on[@]}" "$build/tests/${words[0]}" "${words[@]:1}"
	done <"$top/tests/adapter.list"
	for folder in softhca transport; do
		for program in "$top"/tests/$folder/test_*.c; do
			program=$folder/$(basename "$program" .c)
			grep -qE "^([A-Z_]+=[^ ]* )*$program( |\$)" "$top/tests/adapter.list" || die "tests/adapter.list has no line for $program"
		done
	done
}

# hosts_of FILE: prints the names in a hostfile, each once.
hosts_of() {
	sed 's/#.*//' "$1" | awk 'NF && !seen[$1]++ { print $1 }'
}

# agent_options: prints mpirun's options for the program in place of ssh that TEST_RSH names.
agent_options() {
	[ -n "${TEST_RSH-}" ] || return 0
	case $(ompi_info --parsable | sed -n 's/^ompi:version:full://p') in
	4.*) echo "--mca plm_rsh_agent $TEST_RSH --mca orte_keep_fqdn_hostnames 1" ;;
	*) echo "--prtemca plm_ssh_agent $TEST_RSH" ;;
	esac
}

# run_on_hosts: runs this group on each host of the hostfile, with the build in the same folder there, and then jobs between the hosts.
run_on_hosts() {
	local host on program hosts agent

	mapfile -t hosts < <(hosts_of "$hostfile")
	for host in "${hosts[@]}"; do
		wanted "all on $host" || continue
		# shellcheck disable=SC2029,SC2086 # the words are this side's, and TEST_RSH has several
		pass_or_fail "all on $host" 1800 ${TEST_RSH-ssh} "$host" \
			"$(printf '%q ' "$top/tests/run.sh" --build "$build" --device "$device" adapter "${names[@]}")" </dev/null
	done
	[ ${#hosts[@]} -gt 1 ] || return 0
	if [ ! -e "$build/tests/mpi/p2p" ]; then
		skip "jobs between the hosts" "the build has no Open MPI"
		return
	fi
	read -ra on <<<"$(on_device)"
	read -ra agent <<<"$(agent_options)"
	for program in p2p order requests rma ring coll; do
		wanted "$program between the hosts" || continue
		run "$program between the hosts" 300 "${on[@]}" mpirun --hostfile "$hostfile" --map-by node -n ${#hosts[@]} --mca pml tupleq \
			--mca pml_tupleq_if_include "$device" "${agent[@]}" "$build/tests/mpi/$program"
	done
}

group_adapter() {
	local all=$device

	plain_build
	device=${device:-softhca0}
	if [ -n "$hostfile" ]; then
		in_turn
		run_on_hosts
		return
	fi
	check_device
	# All tests on a real adapter share that one.
	[ -z "$all" ] || in_turn
	run_adapter_list "$all"
}
