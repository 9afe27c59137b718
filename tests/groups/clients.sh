# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group clients: verbs programs of other projects. Sourced by run.sh.

takes clients 30 35
needs clients "${client_packages[@]}"

# Functions for tests/clients/*.sh.
# alone NAME [OPTION of softhca run...] -- COMMAND...: runs the command in a fabric of its own.
alone() {
	local name=$1
	shift
	wanted "$name" || return 0
	pass_or_fail "$name" 180 softhca run "$@"
}

# pair NAME NODES PROGRAM...: runs a server and its client, on the first and on the last virtual node.
pair() {
	local name=$1 nodes=$2
	shift 2
	[ "$nodes" -eq 2 ] || name=$name-on-one-node
	alone "$name" --nodes "$nodes" -- "$clients/pair" $((nodes - 1)) "$@"
}

# find_ucx_perftest: sets perftest, the command for a server or a client. With MPI, as in Debian 13, it would be an MPI job of one rank.
find_ucx_perftest() {
	perftest=(ucx_perftest)
	[[ $(ucx_perftest -h 2>&1) != *"-P <0|1>"* ]] || perftest+=(-P 0)
}

group_clients() {
	local t clients=$top/tests/clients

	plain_build
	for t in "$clients"/*.sh; do
		# shellcheck disable=SC1090 # each of them
		. "$t"
	done
}
