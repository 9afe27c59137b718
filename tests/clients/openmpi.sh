# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Open MPI with its own pml/ucx and with pml/ob1 over btl/openib; the data is verified by NetPIPE and by HPCC.

: "${clients:?set by tests/run.sh}"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

ucx=(--mca pml ucx --mca osc ucx --mca opal_common_ucx_devices any --mca opal_common_ucx_tls any
	-x "UCX_TLS=rc_v,self" -x UCX_NET_DEVICES=softhca0:1)
# Every queue is an RC queue, P or S. X would be openib's XRC queues.
openib=(--mca pml ob1 --mca btl "openib,self" --mca btl_openib_allow_ib 1 --mca btl_openib_cpc_include udcm
	--mca btl_openib_receive_queues "P,128,256,192,128:S,2048,1024,1008,64:S,65536,1024,1008,64")

programs=$clients/../programs
mpirun=(mpirun --oversubscribe -n)

# over_openib NAME [OPTION of softhca run...] -- COMMAND...: runs the command, if this machine's Open MPI has btl/openib.
over_openib() {
	if [[ $(ompi_info --parsable) == *mca:btl:openib:* ]]; then
		alone "$@"
	elif wanted "$1"; then
		skip "$1" "this Open MPI has no btl/openib"
	fi
}

for nodes in 1 2; do
	alone "netpipe-pml-ucx-2-ranks-$nodes-nodes" --nodes $nodes -- "$programs/netpipe" 2 -- "${mpirun[@]}" 2 "${ucx[@]}"
	over_openib "netpipe-btl-openib-2-ranks-$nodes-nodes" --nodes $nodes -- "$programs/netpipe" 2 -- "${mpirun[@]}" 2 "${openib[@]}"
done
alone netpipe-pml-ucx-4-ranks --nodes 2 -- "$programs/netpipe" 4 -- "${mpirun[@]}" 4 "${ucx[@]}"
over_openib netpipe-btl-openib-4-ranks --nodes 2 -- "$programs/netpipe" 4 -- "${mpirun[@]}" 4 "${openib[@]}"
alone hpcc-pml-ucx-4-ranks --nodes 2 -- "$programs/hpcc" 4 -- "${mpirun[@]}" 4 "${ucx[@]}"
over_openib hpcc-btl-openib-4-ranks --nodes 2 -- "$programs/hpcc" 4 -- "${mpirun[@]}" 4 "${openib[@]}"
