# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034 # $bad is the exit status of the scripts that source this
# Shared by the shell tests of MPI programs: a job on softhca, and lines of result. Needs softhca in PATH, and the test
# programs in $TEST_BUILD/tests/mpi.

: "${TEST_BUILD:?set it to the build tree}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
bad=0 # 1: a test failed

# mpi_job SECONDS RANKS [OPTION of softhca run...] -- [ARGUMENT of mpirun...]: runs a job on pml/tupleq and two nodes. Its output is
# in $log.
mpi_job() {
	local seconds=$1 ranks=$2 softhca=()
	shift 2
	while [ "$1" != -- ]; do
		softhca+=("$1")
		shift
	done
	shift
	timeout -k 5 "$seconds" softhca run --nodes 2 "${softhca[@]}" -- \
		mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n "$ranks" --mca pml tupleq "$@" >"$log" 2>&1
}

# passed NAME
passed() {
	echo "ok $1"
}

# failed NAME WHY: shows the job's output, too.
failed() {
	echo "not ok $1 - $2"
	sed 's/^/# /' "$log"
	bad=1
}

# must_refuse NAME OPTION SENTENCE COMMAND...: the job fails with a sentence, which grep looks for by -E or -F.
must_refuse() {
	local name=$1 option=$2 sentence=$3 status=0
	shift 3
	"$@" || status=$?
	# A job that takes too long hangs; a job that a signal ended has crashed.
	if [ $status -eq 0 ] || [ $status -ge 124 ]; then
		failed "$name" "it is not refused: status $status"
	elif ! grep -aq "$option" -e "$sentence" "$log"; then
		failed "$name" "nothing says: $sentence"
	else
		passed "$name is refused"
	fi
}
