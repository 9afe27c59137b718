#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# slurm.sh - jobs started by srun with PMIx, and by sbatch, on one host. slurmctld and slurmd are this test's own, on loopback and
# without munge. Unless Slurm is installed, the distribution's packages are unpacked below the build, where no service begins to run.
# TEST_BUILD is the build tree; softhca is in PATH.
set -uo pipefail
build=${TEST_BUILD:?set it to the build tree}
dir=$(mktemp -d)
out=$dir/out
pids=()
# slurmd would wait for a slurmctld that has ended, and all that the daemons have is in this folder.
trap 'kill -KILL "${pids[@]}" 2>/dev/null; wait "${pids[@]}" 2>/dev/null; rm -rf "$dir"' EXIT
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$out

skip() {
	echo "ok slurm.sh # SKIP $*"
	exit 0
}

# The packages whose files srun and the daemons need, besides those that each system has.
packages=(slurmctld slurmd slurm-client slurm-wlm-basic-plugins libmunge2)

# Sets $root to the folder with Slurm's files.
find_slurm() {
	root=/
	! command -v slurmctld slurmd srun >/dev/null || return 0
	root=$build/slurm/root
	[ ! -e "$build/slurm/done" ] || return 0
	command -v apt-get dpkg >/dev/null || skip "Slurm isn't installed, and there is no apt-get"
	mkdir -p "$root"
	(cd "$build/slurm" && apt-get -q -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o APT::Sandbox::User=root download "${packages[@]}" &&
		for package in *.deb; do dpkg-deb -x "$package" root || exit 1; done) >"$out" 2>&1 ||
		skip "Slurm's packages can't be had: $(tail -n 1 "$out")"
	touch "$build/slurm/done"
}

find_slurm
plugins=$(find "$root"/usr/lib -type d -name 'slurm-wlm' | head -n 1)
[ -n "$plugins" ] || plugins=$(find "$root"/usr/lib* -type d -name 'slurm' | head -n 1)
[ -n "$plugins" ] || skip "Slurm's plugins aren't in $root/usr/lib"
export PATH=$PATH:$root/usr/bin LD_LIBRARY_PATH=${LD_LIBRARY_PATH-}:$plugins:${plugins%/*} SLURM_CONF=$dir/slurm.conf
# In Debian's packages these have a name for Slurm among other batch systems.
daemon() {
	find "$root/usr/sbin" -name "$1-wlm" -o -name "$1" | sort -r | head -n 1
}
control=$(daemon slurmctld) node=$(daemon slurmd) step=$(daemon slurmstepd)
version=$("$control" -V 2>"$out" | awk '{ print $2 }')
[ -n "$version" ] || skip "slurmctld doesn't run: $(head -n 1 "$out")"

host=$(uname -n)
host=${host%%.*}
read -r control_port node_port < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(2)]
for each in sockets:
    each.bind(("127.0.0.1", 0))
print(*(each.getsockname()[1] for each in sockets))')
mkdir "$dir/state" "$dir/spool"
: >"$dir/plugstack.conf"
echo "CgroupPlugin=disabled" >"$dir/cgroup.conf" # read by the versions that know this
case $version in 22.*) rm "$dir/cgroup.conf" ;; esac
cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$control_port
SlurmdPort=$node_port
AuthType=auth/none
CredType=cred/none
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
PluginDir=$plugins
PlugStackConfig=$dir/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SchedulerType=sched/builtin
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=test Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END

# Starts the daemons. Returns true if the node takes jobs.
start() {
	"$control" -D -f "$SLURM_CONF" >"$dir/control" 2>&1 &
	pids+=($!)
	"$node" -D -f "$SLURM_CONF" -d "$step" >"$dir/node" 2>&1 &
	pids+=($!)
	within takes_jobs
}

takes_jobs() {
	timeout 5 sinfo -h -o %t 2>/dev/null | grep -qx idle
}

if ! start; then
	tail -n 5 "$dir/control" "$dir/node" >"$out"
	# The versions that were tried have to start.
	case $version in 22.05.*) check "Slurm $version starts" false && exit 1 ;; esac
	skip "Slurm $version doesn't start: $(tail -n 1 "$dir/node")"
fi
[ "$bad" -eq 0 ] || exit 1
srun --mpi=list >"$out" 2>&1
grep -q pmix "$out" || skip "Slurm $version has no PMIx"

# job STATUS TEXT COMMAND...: returns true if the command ends with this status and its output has the text.
job() {
	local wanted=$1 text=$2 status=0
	shift 2
	OMPI_MCA_pml=tupleq timeout -k 5 60 "$@" >"$out" 2>&1 || status=$?
	{
		echo "status $status"
		tail -n 3 "$dir/node"
	} >>"$out"
	[ "$status" -eq "$wanted" ] && grep -qF -- "$text" "$out"
}

srun=(srun --mpi=pmix --overcommit)
check "srun: two nodes" job 0 "ok ring: messages take queues" softhca run --nodes 2 -- "${srun[@]}" -n 2 "$build/tests/mpi/ring"
check "no test of it failed" test "$(grep -c '^not ok' "$out")" -eq 0
check "srun: within a node" job 0 "" softhca run -- "${srun[@]}" -n 3 "$build/tests/mpi/requests"
check "no test of it failed" test "$(grep -c '^ok' "$out")" -gt 0 -a "$(grep -c '^not ok' "$out")" -eq 0
check "the adapter matches" job 0 "The HCA matched" env OMPI_MCA_pml_tupleq_stats=1 softhca run --nodes 2 -- "${srun[@]}" -n 2 "$build/tests/mpi/order" 1
cat >"$dir/job" <<END
#!/bin/sh
#SBATCH --job-name=ring --output=$dir/job.out --overcommit --ntasks=2
export OMPI_MCA_pml=tupleq
softhca run --nodes 2 -- srun --mpi=pmix --overcommit "$build/tests/mpi/ring"
END
check "sbatch" job 0 "Submitted batch job" sbatch --wait "$dir/job"
cp "$dir/job.out" "$out"
check "its output" grep -q "^ok ring: messages take queues" "$out"
if [ ! -e /sys/class/infiniband ]; then
	status=0
	OMPI_MCA_pml=tupleq timeout -k 5 60 "${srun[@]}" -n 2 "$build/tests/mpi/ring" >"$out" 2>&1 || status=$?
	check "no adapter: a sentence" grep -q "No RDMA device was found" "$out"
	check "no adapter: a status" test "$status" -ne 0 -a "$status" -lt 124
fi
no_jobs() {
	[ -z "$(timeout 5 squeue -h 2>&1)" ]
}
# A step that ends tells slurmctld so, and would try for minutes.
within no_jobs
exit "$bad"
