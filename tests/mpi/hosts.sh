#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hosts.sh - windows between hosts, as Open MPI sees them: mpirun starts a daemon for each host, which here has only a name of its
# own. (Otherwise all processes are on one host for Open MPI, on whichever virtual node they are.) TEST_BUILD is the build tree; softhca
# is in PATH.
build=${TEST_BUILD:?set it to the build tree}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# In place of ssh: HOST COMMAND...
cat >"$tmp/agent" <<'END'
#!/bin/sh
host=$1
shift
namespaces=--uts
[ "$(id -u)" -eq 0 ] || namespaces="--user --map-root-user --uts"
export SOFTHCA_NODE=$((${host#h} - 1))
exec unshare $namespaces sh -c 'hostname "$0"; eval "$*"' "$host" "$@"
END
chmod +x "$tmp/agent"

if ! "$tmp/agent" h1 true 2>"$tmp/why"; then
	echo "ok hosts.sh # SKIP $(tail -n 1 "$tmp/why")"
	exit
fi
case $(ompi_info --parsable | sed -n 's/^ompi:version:full://p') in
4.1.[1-4]) dynamic_hangs=1 options=(--mca plm_rsh_agent "$tmp/agent" --mca orte_keep_fqdn_hostnames 1) ;;
4.*) dynamic_hangs='' options=(--mca plm_rsh_agent "$tmp/agent" --mca orte_keep_fqdn_hostnames 1) ;;
*) dynamic_hangs='' options=(--prtemca plm_ssh_agent "$tmp/agent") ;;
esac

ranks=4

# job OPTIONS... PROGRAM...: runs a program on two hosts. The output is in $tmp/out, the status in $status.
job() {
	timeout -k 5 60 softhca run --nodes 2 --memlock unlimited -- \
		mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 \
		"${options[@]}" --host h1:2,h2:2 -n $ranks "$@" >"$tmp/out" 2>&1
	status=$?
}

# verdict NAME [PATTERN]: without PATTERN the job must pass; with PATTERN it must fail, with a message that matches.
verdict() {
	if [ -n "${2-}" ] && [ "$status" -ne 0 ] && [ "$status" -lt 124 ] && grep -Eq "$2" "$tmp/out"; then
		echo "ok $1"
	elif [ -z "${2-}" ] && [ "$status" -eq 0 ] && grep -q '^ok ' "$tmp/out" && ! grep -q '^not ok ' "$tmp/out"; then
		echo "ok $1"
	else
		echo "not ok $1 - status $status"
		sed 's/^/# /' "$tmp/out"
	fi
}

for protocol in tupleq tupleq-copy rput rget; do
	for program in "windows create allocate" rma "rma atomics"; do
		read -ra words <<<"$program"
		job --mca pml tupleq --mca pml_tupleq_protocol "$protocol" "$build/tests/mpi/${words[0]}" "${words[@]:1}"
		verdict "hosts: $protocol: $program"
	done
done
job --mca pml ob1 --mca btl tupleq,self "$build/tests/mpi/windows" create allocate
verdict "hosts: ob1 over btl/tupleq: windows create allocate"
job --mca pml ob1 --mca btl tupleq,self "$build/tests/mpi/p2p" 65537
verdict "hosts: ob1 over btl/tupleq: p2p"

for pml in "tupleq" "ob1 --mca btl tupleq,self"; do
	read -ra words <<<"$pml"
	if [ -n "$dynamic_hangs" ]; then
		job --mca pml "${words[@]}" --mca osc rdma,sm "$build/tests/mpi/windows" dynamic
		verdict "hosts: ${words[0]}: dynamic windows are refused" "osc/rdma isn't used for a window: .* dynamic window"
		job --mca pml "${words[@]}" --mca osc rdma,sm,pt2pt "$build/tests/mpi/windows" dynamic
		verdict "hosts: ${words[0]}: dynamic windows by osc/pt2pt"
	else
		job --mca pml "${words[@]}" "$build/tests/mpi/windows" dynamic
		verdict "hosts: ${words[0]}: dynamic windows"
	fi
done

# Units that differ between ranks, one of which is alone on its host. Open MPI 4.1's osc/rdma takes the wrong one.
ranks=2
case $(ompi_info --parsable) in
*mca:osc:pt2pt:*)
	job --map-by node --mca pml tupleq --mca osc rdma,sm,pt2pt "$build/tests/mpi/units"
	verdict "hosts: different units by osc/pt2pt"
	job --map-by node --mca pml tupleq --mca osc rdma,sm "$build/tests/mpi/units"
	verdict "hosts: different units are refused" "osc/rdma isn't used for a window: .* displacement unit"
	# Both ranks are on the first host.
	job --mca pml tupleq --mca osc rdma,sm,pt2pt --mca btl_base_verbose 10 "$build/tests/mpi/windows" dynamic
	grep -q "osc/pt2pt is used for a window instead of osc/rdma" "$tmp/out" || status=1
	verdict "hosts: dynamic windows within a host by osc/pt2pt"
	job --mca pml tupleq --mca osc rdma,sm "$build/tests/mpi/windows" dynamic
	grep -q "osc/rdma is used for a window, although .* MPI_Win_attach" "$tmp/out" || status=1
	verdict "hosts: dynamic windows within a host by osc/rdma, with a warning"
	;;
esac

# The target is killed, on the other host. With --enable-recovery mpirun's status is 0. (With more ranks mpirun sometimes doesn't end
# after them.)
ranks=2
job --map-by node --enable-recovery --mca pml tupleq "$build/tests/mpi/widow" lock
[ "$status" -ne 0 ] || status=1
verdict "hosts: the target of a lock is killed" "One-sided communication with rank 1 on host h2 has failed"
