#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# MPI programs on Open MPI's own components for Portals 4, which components.sh builds, and libportals: on mtl/portals4, and on what
# the options of a line choose. TEST_BUILD is the build tree.
#
#   openmpi.sh [LINE...]: the lines of mpi.list that contain one of these words
set -u

here=$(cd "$(dirname "$0")" && pwd)
: "${TEST_BUILD:?set it to the build tree}"
components=$TEST_BUILD/portals-openmpi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
bad=0

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

while IFS='|' read -r nodes ranks options program; do
	case $nodes in '#'* | '') continue ;; esac
	[ $# = 0 ] || [[ $program == *"$1"* ]] || continue
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
exit $bad
