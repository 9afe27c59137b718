#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_peer.sh - tupleq-check --peer between two virtual nodes, and what it says when the peer isn't there, has another version, can't
# be reached by its adapter, or goes away. softhca and tupleq-check are in PATH.
set -uo pipefail

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$tmp/out
port=$((20000 + RANDOM % 12000))
export tmp port

# Runs a server on node 0 with the words of SERVER, and when it listens the client with its words on node 1. The exit status is the
# client's. With END the server is ended in the middle: when the client prints a line that contains END.
pair() {
	: >"$tmp/server" # the output of the server before it
	# shellcheck disable=SC2086 # several words
	SOFTHCA_NODE=0 tupleq-check --serve="$port" ${SERVER-} >"$tmp/server" 2>&1 &
	local server=$! status=0
	until grep -q "serves peers" "$tmp/server"; do
		kill -0 $server || return 1
	done
	if [ -z "${END-}" ]; then
		SOFTHCA_NODE=1 tupleq-check --peer "localhost:$port" "$@" || status=$?
	else
		SOFTHCA_NODE=1 stdbuf -oL tupleq-check --peer "localhost:$port" "$@" >"$tmp/client" 2>&1 &
		local client=$!
		until grep -q "$END" "$tmp/client"; do
			kill -0 $client || break
		done
		kill -KILL $server
		wait $client || status=$?
		cat "$tmp/client"
	fi
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	return $status
}
export -f pair

# says STATUS TEXT [OPTION of softhca run...] -- WORD...: the client ends with this status, and says this.
says() {
	local wanted=$1 text=$2 status=0 options=()

	shift 2
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	timeout 100 softhca run --nodes 2 --memlock unlimited "${options[@]}" -- bash -c 'pair "$@"' pair "$@" >"$tmp/out" 2>&1 || status=$?
	echo "status $status" >>"$tmp/out"
	[ "$status" -eq "$wanted" ] && grep -qE -- "$text" "$tmp/out"
}

# A peer of another program, or version: Python, which answers with BYTES.
stranger() {
	rm -f "$tmp/port"
	python3 - "$1" >"$tmp/port" <<-'END' &
		import socket, sys
		s = socket.create_server(("localhost", 0))
		print(s.getsockname()[1], flush=True)
		c, _ = s.accept()
		c.recv(1000)
		c.sendall(eval(sys.argv[1]))
	END
	local server=$! status=0
	until [ -s "$tmp/port" ]; do
		kill -0 $server || return 1
	done
	softhca run -- tupleq-check --peer "localhost:$(cat "$tmp/port")" >"$tmp/out" 2>&1 || status=$?
	echo "status $status" >>"$tmp/out"
	wait $server
	[ "$status" -eq "$2" ] && grep -q -- "$3" "$tmp/out"
}

absent() {
	local status=0
	softhca run -- tupleq-check --peer "localhost:1" >"$tmp/out" 2>&1 || status=$?
	[ "$status" -eq 3 ] && grep -q "TCP port 1 there can't be reached (Connection refused); start tupleq-check --serve there" "$tmp/out"
}

# In virtual time a trip takes the latency of the link and the prices of verbs, and a stream goes at the link's bandwidth.
figures() {
	says 0 . --clock virtual --clock-cpu 0 --link latency=2us,bandwidth=1GB/s -- --json && sed '$d' "$tmp/out" | python3 -c '
import json, sys
doc = json.load(sys.stdin)
port, = doc["ports"]
assert port["works"] and [t["status"] for t in port["tests"]] == ["ok", "ok"]
price = {(p["name"], p["bytes"]): p["median"] for p in port["prices"]}
assert 2 < price["half a round trip", 8] < 3, price
assert 65.5 < price["a write of a stream", 65536] < 66.5, price
assert len(price) == 8, price' 2>>"$tmp/out"
}

refused() {
	local status=0
	softhca run -- tupleq-check "${@:2}" >"$tmp/out" 2>&1 || status=$?
	[ "$status" -eq 2 ] && grep -q -- "$1" "$tmp/out"
}

no_device() {
	local status=0
	softhca run -- tupleq-check --peer localhost --device mlx5_0 >"$tmp/out" 2>&1 || status=$?
	[ "$status" -eq 1 ] && grep -q "mlx5_0" "$tmp/out"
}

check "a peer on InfiniBand" says 0 "half a round trip" --
check "a peer on RoCE" says 0 "a write of a stream" --link-layer ethernet --
check "figures in virtual time" figures
check "nobody there" absent
check "another program there" stranger 'b"HTTP/1.1 400 Bad Request" + bytes(100)' 3 "isn't tupleq-check's"
check "another version there" stranger 'b"tupleqck" + b"0.0.9".ljust(24, bytes(1)) + bytes([1, 0, 0, 0])' 4 "has version 0.0.9"
check "a message that doesn't arrive" says 5 "message to the peer" --fault-drop 1 --
SERVER="--device mlx5_0" check "no port there" says 5 "no port works there" --
END="half a round trip" check "a peer that goes away" says 6 "went away in the middle" --
check "a wrong name" refused "is no peer" --peer ":1"
check "words that don't go together" refused "only for each other" --peer localhost --facts
check "no device here" no_device
exit $bad
