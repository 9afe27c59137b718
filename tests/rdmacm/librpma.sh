#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# librpma.sh BUILD LAYER: runs librpma's examples, of its source package or of the folder $RPMA_SOURCE, on the distribution's librpma.
# Left out are those that need protobuf-c (09), that expect a number of clients (13),
# and that wait for the completions of two CQs in one order (12scch).
set -euo pipefail

build=$1 layer=$2
here=$(cd "$(dirname "$0")" && pwd)
address=10.77.0.1 port=7204

# shellcheck source=tests/sources.sh
. "$here/../sources.sh"
mkdir -p "$build/tests/rdmacm/librpma"
cd "$build/tests/rdmacm/librpma"
if ! examples_source rpma librpma "${RPMA_SOURCE-}" examples; then
	echo "ok librpma # SKIP $missing"
	exit 0
fi

# compile EXAMPLE: makes EXAMPLE-server and EXAMPLE-client.
compile() {
	local side common=()

	for side in conn utils hello epoll messages-ping-pong; do
		common+=("$source/examples/common/common-$side.c")
	done
	for side in server client; do
		[ "$1-$side" -nt "$source/examples/$1/$side.c" ] ||
			gcc -w -std=gnu99 -D_GNU_SOURCE "-I$source/examples/common" -o "$1-$side" "$source/examples/$1/$side.c" \
				"$source/examples/$1"/*common*.c "${common[@]}" -lrpma -libverbs
	done
}

# example NAME [OPTION of pair] -- ARGUMENT of the client...
example() {
	local name=$1 options=()
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	compile "$name"
	# These examples arm a CQ before they poll it, and take each event for a completion.
	"$here/../as_test" "librpma $name" timeout 60 softhca run --nodes 2 --link-layer "$layer" --cq-arm new -- "$here/pair" listening "${options[@]}" \
		"./$name-server" $address $port -- "./$name-client" $address $port "$@"
}

shopt -s nullglob
example 01-connection --
example 02-read-to-volatile --
example 03-read-to-persistent --
example 04-write-to-persistent --
example 05-flush-to-persistent --
example 06-multiple-connections -k -- 8
example 06scch-multiple-connections -k -- 8
example 07-atomic-write -- first second
example 08-messages-ping-pong -- 7 3
example 08srq-simple-messages-ping-pong-with-srq -- 7 3
example 10-send-with-imm -- 1234 first
example 11-write-with-imm -- 1234
example 12-receive-completion-queue -- 7 3
