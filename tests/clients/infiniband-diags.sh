# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# ibstat and ibstatus of Debian's infiniband-diags, which read /sys/class/infiniband.

: "${clients:?set by tests/run.sh}"

for layer in infiniband ethernet; do
	alone "ibstat-$layer" --nodes 2 --devices 2 --link-layer "$layer" -- "$clients/diags" ibstat
	alone "ibstatus-$layer" --nodes 2 --devices 2 --link-layer "$layer" -- "$clients/diags" ibstatus
	alone "ibstat-$layer-node-1" --nodes 2 --devices 2 --link-layer "$layer" -- env SOFTHCA_NODE=1 "$clients/diags" ibstat
	alone "ibstatus-$layer-node-1" --nodes 2 --devices 2 --link-layer "$layer" -- env SOFTHCA_NODE=1 "$clients/diags" ibstatus
done
