# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group seeds: MPI programs and libtupleq's tests in virtual time, each run by another seed of jitter, and of reordering and
# faults in many. Sourced by run.sh.

takes seeds 30
needs seeds "${mpi_packages[@]}"

# The lists from which each seed takes one line: FOLDER/LIST.
seed_lists=(mpi/virtual.list transport/virtual.list)
[ -z "${SEED_LISTS-}" ] || read -ra seed_lists <<<"$SEED_LISTS"

# seed_lines: prints FOLDER|LINE for each line of the lists.
seed_lines() {
	local list

	for list in "${seed_lists[@]}"; do
		grep -vE '^(#|$)' "$top/tests/$list" | sed "s,^,${list%/*}|,"
	done
}

# mixed NUMBER: prints a number whose bits depend on many of NUMBER's, so that line, reordering and faults don't go together.
mixed() {
	echo $((($1 * 2654435761 ^ $1 * 40503 >> 5) >> 8 & 0xffffff))
}

# environment_of SEED FOLDER: sets the array environment to the settings that a seed chooses. A line's own options come before these.
environment_of() {
	local v

	v=$(mixed "$1")
	# shellcheck disable=SC2054 # the comma is the link's
	# In shared memory messages would be late.
	environment=(OMPI_MCA_pml_tupleq_intranode=hca SOFTHCA_CLOCK=virtual SOFTHCA_CLOCK_CPU=0 SOFTHCA_CLOCK_TSC=trap SOFTHCA_CLOCK_REPORT=yes
		SOFTHCA_LINK=latency=1us,bandwidth=10GB/s SOFTHCA_CLOCK_SEED="$1" TEST_DEADLINE=100)
	[ $((v & 1)) -eq 0 ] || environment+=(SOFTHCA_REORDER="$1")
	# The tests of libtupleq count what they caused themselves.
	[ $((v / 2 % 3)) -ne 0 ] || [ "$2" != mpi ] || environment+=(SOFTHCA_FAULT_SEED="$1" SOFTHCA_FAULT_DROP=0.001
		SOFTHCA_FAULT_RNR=0.01 SOFTHCA_FAULT_DELAY=0.005)
}

# seed_mpi PREFIX NUMBER LINE: runs a line of a list in tests/mpi, with one of its protocols.
seed_mpi() {
	# shellcheck disable=SC2034 # for mpi_line
	# With faults threads wait for longer, and each of their polls is a turn.
	local prefix=$1 number=$2 f protocols mpi_seconds=300

	IFS='|' read -ra f <<<"$3"
	protocols=$(tr -d ' ' <<<"${f[0]}")
	[ "$protocols" != all ] || protocols=tupleq,tupleq-copy,rput,rget
	IFS=, read -ra protocols <<<"$protocols"
	mpi_line mpi "$prefix" "${protocols[number % ${#protocols[@]}]}" "${f[1]}" "$(tr -d ' ' <<<"${f[2]}")" "${f[3]}" "${f[4]}" \
		"${environment[@]}"
}

# seed_transport PREFIX LINE: runs a line of a list in tests/transport.
seed_transport() {
	local options program

	read -ra options <<<"${2%% -- *}"
	read -ra program <<<"${2#* -- }"
	run "$1${program[*]} [${options[*]}]" 300 env "${environment[@]}" softhca run "${options[@]}" -- \
		"$build/tests/transport/${program[0]}" "${program[@]:1}"
}

# run_seed SEED LINE...: runs the line that the seed chooses.
run_seed() {
	local seed=$1 environment=() line hint
	shift

	line=${*:1 + seed % $#:1}
	environment_of "$seed" "${line%%|*}"
	# shellcheck disable=SC2034 # run shows it below a failure
	hint="repeat it: ${SEED_LISTS:+SEED_LISTS=\"$SEED_LISTS\" }SEED=$seed tests/run.sh --build $build seeds"
	case $line in
	mpi'|'*) seed_mpi "seed $seed: " $((seed / $#)) "${line#*|}" ;;
	*) seed_transport "seed $seed: " "${line#*|}" ;;
	esac
}

# With SEED only that one runs. Else seeds run, from SEED_FIRST on (1), for TEST_BUDGET seconds; for 30 beside other groups.
group_seeds() {
	local seed until=$((SECONDS + 30)) lines

	plain_build
	mapfile -t lines < <(seed_lines)
	if [ -n "${SEED-}" ]; then
		run_seed "$SEED" "${lines[@]}"
		return
	fi
	[ -z "${TEST_BUDGET-}" ] || [ ${#groups[@]} -gt 1 ] || until=$TEST_BUDGET
	local TEST_BUDGET='' # no seed is skipped
	for ((seed = ${SEED_FIRST:-1}; SECONDS < until; seed++)); do
		run_seed "$seed" "${lines[@]}"
	done
}
