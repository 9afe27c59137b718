#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the MPI programs of mpi.list on libportals, through Open MPI's own Portals 4 components (components.sh builds them):
# mtl/portals4, or the component that a line's options select. TEST_BUILD is the build tree.
#
#   openmpi.sh [WORD...]: only the lines of mpi.list whose program contains one of these words
set -u

here=$(cd "$(dirname "$0")" && pwd)
: "${TEST_BUILD:?set it to the build tree}"
: "${OMPI_MCA_mca_base_component_path:?source env.sh of the build tree first}"
components=$TEST_BUILD/portals-openmpi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
bad=0 lines=0

status=0
"$here/components.sh" "$TEST_BUILD" "$components" >"$log" 2>&1 || status=$?
if [ $status = 77 ]; then
	echo "ok mtl/portals4 # SKIP $(tail -n 1 "$log")"
	exit 0
elif [ $status != 0 ]; then
	echo "not ok components of Open MPI"
	sed 's/^/# /' "$log"
	exit 1
fi
export OMPI_MCA_mca_base_component_path=$components:$OMPI_MCA_mca_base_component_path
export OMPI_MCA_pml=cm OMPI_MCA_mtl=portals4 OMPI_MCA_coll=^tupleq,portals4 OMPI_MCA_osc=^portals4

# Prints the name of the component that a line is about.
component() {
	case $1 in
	*btl*) echo btl/portals4 ;;
	*osc*) echo osc/portals4 ;;
	*coll*) echo coll/portals4 ;;
	*) echo mtl/portals4 ;;
	esac
}

# is_wanted PROGRAM [WORD...]: true if there are no words, or the program contains one of them.
is_wanted() {
	local program=$1 word
	shift
	[ $# != 0 ] || return 0
	for word; do
		[[ $program != *"$word"* ]] || return 0
	done
	return 1
}

while IFS='|' read -r nodes ranks options program; do
	case $nodes in '#'* | '') continue ;; esac
	is_wanted "$program" "$@" || continue
	lines=$((lines + 1))
	read -ra words <<<"$options"
	read -ra program <<<"$program"
	label="$(component "$options"): ${program[*]} (${ranks// /} ranks, ${nodes// /} nodes)"
	if timeout -k 5 120 softhca run --nodes "${nodes// /}" --memlock unlimited -- \
		mpirun --allow-run-as-root --oversubscribe --mca mpi_yield_when_idle 1 -n "${ranks// /}" "${words[@]}" \
		"$TEST_BUILD/tests/mpi/${program[0]}" "${program[@]:1}" >"$log" 2>&1 </dev/null && ! grep -aq '^not ok' "$log" &&
		grep -aq '^ok' "$log"; then
		echo "ok $label"
	else
		echo "not ok $label"
		sed 's/^/# /' "$log"
		bad=1
	fi
done <"$here/mpi.list"
if [ $lines = 0 ]; then
	echo "not ok openmpi.sh: no line of mpi.list contains: $*"
	bad=1
fi
exit $bad
