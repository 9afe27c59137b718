# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group mpi: MPI programs that check the data that they receive. Sourced by run.sh.

takes mpi 430 90
needs mpi "${mpi_packages[@]}"

# mpi_module PROTOCOL: the options of mpirun for the module under test. They name the module, so that mpirun fails if it can't be used.
# With PML=ob1 or PML=ucx in the environment they name another module, for reference. (btl/tcp is for spawned processes.)
mpi_module() {
	case ${PML-tupleq} in
	tupleq) echo --mca pml tupleq --mca pml_tupleq_protocol "$1" ;;
	btl) echo --mca pml ob1 --mca btl tupleq,self ;;
	# The names of the parameter in 4.1 and in 5.0.
	ofi) echo --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include tupleq --mca opal_common_ofi_provider_include tupleq ;;
	ob1) echo --mca pml ob1 --mca btl vader,self,tcp --mca btl_vader_eager_limit 8192 --mca btl_vader_single_copy_mechanism none ;;
	ucx)
		echo --mca pml ucx --mca opal_common_ucx_devices any --mca opal_common_ucx_tls any \
			-x UCX_TLS=rc_v,self -x UCX_NET_DEVICES=softhca0:1
		;;
	*) die "PML is tupleq, btl (ob1 on btl/tupleq), ofi (mtl/ofi on the provider of libfabric), ob1 or ucx, not $PML" ;;
	esac
}

# intranode OPTIONS: the option that sets pml_tupleq_intranode to INTRANODE in the environment, unless the line's options of mpirun set it.
intranode() {
	[ -z "${INTRANODE-}" ] || [ "${PML-tupleq}" != tupleq ] || [[ $1 == *pml_tupleq_intranode* ]] ||
		echo --mca pml_tupleq_intranode "$INTRANODE"
}

# crowds SOFTHCA-OPTIONS: says why a line can't run on NODES nodes, the number in the environment. Says nothing if it can.
crowds() {
	[[ -n ${NODES-} && $1 =~ --nodes\ ([0-9]+) && ${BASH_REMATCH[1]} -gt $NODES && $1 =~ --max-(srq|qp|mr)\  ]] || return 0
	echo "more ranks than the line has would share an adapter with few objects"
}

# lacks OPTIONS: says why this machine's Open MPI can't run a line with these options of mpirun. Says nothing if it can.
lacks() {
	[[ $1 == *"--mca osc pt2pt"* ]] || return 0
	[[ $(ompi_info --parsable) == *mca:osc:pt2pt:* ]] || echo "this Open MPI has no osc/pt2pt"
}

mpi_seconds=120 # that a line may take; other groups may allow more

# mpi_line FOLDER PREFIX PROTOCOLS SOFTHCA-OPTIONS RANKS MPIRUN-OPTIONS PROGRAM [ENVIRONMENT...]: runs a line of a list. Programs in
# tests/mpi are built. Programs in tests/programs are scripts, with the arguments RANKS, their own, "--" and the mpirun to use.
# With NODES in the environment all lines have that number of nodes.
mpi_line() {
	local folder=$1 prefix=$2 protocols=$3 ranks=$5 protocol label softhca options program module mpirun judge=run command reason
	read -ra softhca <<<"$4${NODES:+ --nodes $NODES}"
	read -ra options <<<"$6"
	read -ra program <<<"$7"
	reason=$(lacks "$6")$(crowds "$4")
	shift 7

	[ "$protocols" != all ] || protocols=tupleq,tupleq-copy,rput,rget
	[ "${PML-tupleq}" = tupleq ] || protocols=$PML
	for protocol in ${protocols//,/ }; do
		label="$prefix$protocol: ${program[*]}, $ranks ranks${softhca[*]:+ [${softhca[*]}]}${options[*]:+ [${options[*]}]}"
		wanted "$label" || continue
		if [ -n "$reason" ]; then
			skip "$label" "$reason"
			continue
		fi
		read -ra module <<<"$(mpi_module "$protocol") $(intranode "${options[*]}")"
		mpirun=(mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1
			-n "$ranks" "${module[@]}" "${options[@]}")
		case $folder/${program[0]} in
		programs/*) command=("$top/tests/programs/${program[0]}" "$ranks" "${program[@]:1}" -- "${mpirun[@]}") ;;
		# A program of another folder passes if its exit status is 0.
		*/*/*) judge=pass_or_fail command=("${mpirun[@]}" "$build/${program[0]}" "${program[@]:1}") ;;
		*) command=("${mpirun[@]}" "$build/tests/mpi/${program[0]}" "${program[@]:1}") ;;
		esac
		"$judge" "$label" "$mpi_seconds" env "$@" softhca run --memlock unlimited "${softhca[@]}" -- "${command[@]}"
	done
}

# run_mpi FOLDER/LIST PREFIX [ENVIRONMENT...]: runs the lines of a list below tests/.
run_mpi() {
	local list=$1 prefix=$2 line f
	shift 2
	while IFS= read -r line; do
		case $line in '' | '#'*) continue ;; esac
		IFS='|' read -ra f <<<"$line"
		mpi_line "${list%/*}" "$prefix" "$(tr -d ' ' <<<"${f[0]}")" "${f[1]}" "$(tr -d ' ' <<<"${f[2]}")" "${f[3]}" "${f[4]}" "$@"
	done <"$top/tests/$list"
}

group_mpi() {
	plain_build
	run_mpi mpi/suite.list ""
	! in_full "$(lines_of mpi/long.list)" || run_mpi mpi/long.list ""
	# The rest checks messages that only pml/tupleq prints.
	[ "${PML-tupleq}" = tupleq ] || return 0
	PML=btl run_mpi mpi/btl.list ""
	# Their jobs poll on all processors: side by side they take longer than one after the other, and some longer than they may.
	in_turn
	wanted limits.sh && run limits.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/limits.sh"
	wanted room.sh && run room.sh 600 env TEST_BUILD="$build" "$top/tests/mpi/room.sh"
	wanted steps.py && run steps.py 200 env TEST_BUILD="$build" "$top/tests/mpi/steps.py"
	wanted params.sh && run params.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/params.sh"
	wanted report.sh && run report.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/report.sh"
	wanted bench_signal.sh && pass_or_fail bench_signal.sh 300 "$top/tests/bench_signal.sh"
	wanted allocators.sh && run allocators.sh 600 env TEST_BUILD="$build" "$top/tests/mpi/allocators.sh"
	wanted bench.sh && run bench.sh 400 env TEST_BUILD="$build" "$top/tests/mpi/bench.sh"
	wanted paper.sh && run paper.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/paper.sh"
	wanted slurm.sh && run slurm.sh 200 env TEST_BUILD="$build" "$top/tests/mpi/slurm.sh"
	wanted hosts.sh && run hosts.sh 300 env TEST_BUILD="$build" "$top/tests/mpi/hosts.sh"
	wanted failures.sh && run failures.sh 900 env TEST_BUILD="$build" "$top/tests/mpi/failures.sh"
	return 0
}
