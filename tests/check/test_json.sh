#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_json.sh - the JSON document of tupleq-check. softhca and tupleq-check are in PATH.
set -uo pipefail

out=$(mktemp)
trap 'rm -f "$out"' EXIT
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$out

# holds STATUS CONDITION COMMAND...: returns true if the command ends with this status, prints JSON and nothing else, and the condition
# in Python holds for it: "doc" is the document, and "port" its first port.
holds() {
	local wanted=$1 condition=$2 status=0
	shift 2
	timeout 120 "$@" >"$out" || status=$?
	[ "$status" -eq "$wanted" ] && python3 - "$out" "$condition" <<-'END'
		import json, sys
		doc = json.load(open(sys.argv[1]))
		port = doc["ports"][0] if doc["ports"] else None
		def named(kind, name):
		    return next(entry for entry in port[kind] if entry["name"] == name)
		def median(name, bytes=None):
		    return next(entry["median"] for entry in port["prices"] if (entry["name"], entry["bytes"]) == (name, bytes))
		assert set(doc) == {"version", "host", "works", "because", "advice", "ports"}, set(doc)
		for each in doc["ports"]:
		    assert set(each) == {"device", "port", "works", "because", "advice", "facts", "tests", "prices"}, set(each)
		    for fact in each["facts"]:
		        assert set(fact) == {"name", "status", "found", "because", "advice"}, fact
		        assert fact["status"] in ("ok", "lacks", "bad") and (fact["because"] is None) == (fact["status"] == "ok"), fact
		    for test in each["tests"]:
		        assert set(test) == {"name", "status", "because"} and test["status"] in ("ok", "failed", "not run"), test
		    for price in each["prices"]:
		        assert set(price) == {"name", "bytes", "unit", "median", "q1", "q3", "samples", "because"}, price
		        assert price["because"] or 0 <= price["q1"] <= price["median"] <= price["q3"], price
		assert eval("(" + sys.argv[2] + ")"), sys.argv[2]
	END
}

check "a port that works" holds 0 'doc["works"] and port["works"] and port["because"] is None and len(port["tests"]) == 9' \
	softhca run -- tupleq-check --json --no-prices
check "facts only" holds 0 'port["works"] and not port["tests"] and not port["prices"] and len(port["facts"]) == 13' \
	softhca run -- tupleq-check --json --facts
check "two devices" holds 0 '[(p["device"], p["port"]) for p in doc["ports"]] == [("softhca0", 1), ("softhca1", 1)]' \
	softhca run --devices 2 -- tupleq-check --json --facts
check "a port that doesn't work" holds 1 'port["works"] is False and "XRC" in port["because"] and port["advice"] and not port["tests"]' \
	softhca run --xrc no -- tupleq-check --json
check "what lacks" holds 0 'named("facts", "atomics")["status"] == "lacks" and named("tests", "atomic operations")["status"] == "not run"' \
	softhca run --atomics no -- tupleq-check --json --no-prices
check "no such device" holds 1 'not doc["ports"] and "mlx5_0" in doc["because"] and doc["advice"]' \
	softhca run -- tupleq-check --json --device mlx5_0
check "prices" holds 0 'len(port["prices"]) == 44 and all(p["samples"] >= 5 and p["median"] > 0 and p["unit"] == "us" for p in port["prices"]) and
	[p["bytes"] for p in port["prices"] if p["name"] == "ibv_reg_mr()"] == [4096, 65536, 1048576, 16777216]' \
	softhca run --memlock unlimited -- tupleq-check --json
# In virtual time a verb costs what softhca says, and a pause takes its time.
check "prices in virtual time" holds 0 '20 <= median("create an SRQ") < 21 and 30 <= median("ibv_reg_mr()", 4096) < 31 and 0.1 <= median("post a send", 8) < 0.12
	and 10 < median("RNR pause, timer code 1") < 15 and 640 < median("RNR pause, timer code 12") < 645
	and 65536 / 25e3 < median("a message of a stream", 65536) < 3.5
	and median("half a round trip", 8) + 2 < median("half a round trip", 65536) < 2 * median("half a round trip", 16384) + 2' \
	softhca run --clock virtual --clock-cpu 0 --link latency=600ns,bandwidth=25GB/s -- tupleq-check --json
check "few SRQs" holds 0 'median("a message, SRQs in use: 16", 8) and median("a message, SRQs in use: 128", 8) is None' \
	softhca run --max-srq 100 -- tupleq-check --json
check "short messages" holds 0 'median("half a round trip", 4096) and median("half a round trip", 16384) is None
	and median("a message of a stream", 65536) is None' \
	softhca run --max-msg-sz 4096 -- tupleq-check --json
check "a price that can't be found out" holds 0 'port["works"] and named("prices", "post a send inline")["because"] == "no queue pair takes inline data"
	and named("prices", "post a send inline")["median"] is None and named("prices", "post a send")["because"] is None' \
	softhca run --max-inline 0 -- tupleq-check --json
check "no memory for a price" holds 0 'any(p["bytes"] == 16777216 and "Cannot allocate" in p["because"] for p in port["prices"] if p["because"])' \
	softhca run --memlock 8M -- tupleq-check --json
if [ -e /sys/class/infiniband ]; then
	echo "ok no device # SKIP this machine has adapters"
else
	check "no device" holds 1 'not doc["works"] and not doc["ports"] and "no RDMA device" in doc["because"]' tupleq-check --json
fi
exit "$bad"
