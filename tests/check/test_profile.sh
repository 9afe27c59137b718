#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_profile.sh - what tupleq-check --profile writes is a profile of softhca run, and of the same adapter. softhca and tupleq-check
# are in PATH.
set -uo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
out=$dir/out
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$out

# ends STATUS TEXT COMMAND...: returns true if the command ends with this status and its output has the text.
ends() {
	local wanted=$1 text=$2 status=0
	shift 2
	timeout 100 "$@" >"$out" 2>&1 || status=$?
	echo "status $status" >>"$out"
	[ "$status" -eq "$wanted" ] && grep -qF -- "$text" "$out"
}

# alike MEASURED GIVEN: returns true if softhca reads the measured profile, and its link, prices and limits are those of the given one.
alike() {
	softhca options --json --profile "$1" >"$dir/measured.json" && softhca options --json --profile "$2" >"$dir/given.json" &&
		python3 - "$dir/measured.json" "$dir/given.json" >"$out" 2>&1 <<-'END'
			import json, re, sys
			measured, given = ({o["name"]: o for o in json.load(open(path))} for path in sys.argv[1:])
			UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
			def time(text):
			    number, unit = re.fullmatch(r"([0-9.]+)([a-z]+)", text).groups()
			    return float(number) * UNITS[unit]
			def link(text):
			    fields = dict(field.split("=") for field in text.split(","))
			    return time(fields["latency"]), float(fields["bandwidth"].removesuffix("GB/s"))
			wrong = []
			for name, option in measured.items():
			    if option["from"] != "profile":
			        continue
			    here, there = option["value"], given[name]["value"]
			    if name == "link":
			        (latency, bandwidth), (wanted, carries) = link(here), link(there)
			        right = abs(latency - wanted) < 0.1 * wanted and abs(bandwidth - carries) < 0.05 * carries
			    elif name.startswith("price-"):
			        right = abs(time(here) - time(there)) <= 0.1 * time(there) + 3
			    else:
			        right = here == there
			    if not right:
			        wrong.append(f"{name} is {here}, and should be {there}")
			names = {name for name, option in measured.items() if option["from"] == "profile"}
			missing = {"link", "max-srq", "max-qp", "part-id", *(name for name in given if name.startswith("price-"))} - names
			sys.exit("\n".join([*wrong, *(f"{name} is missing" for name in missing)]) or 0)
		END
}

# An adapter like no shipped one.
cat >"$dir/given.profile" <<'END'
link = latency=900ns,bandwidth=8GB/s
price-post = 210ns
price-recv = 90ns
price-poll = 30ns
price-cqe = 70ns
price-arm = 150ns
price-event = 3us
price-reg = 45us
price-page = 250ns
price-call = 33us
price-time = 20ns
part-id = 4242
max-srq = 3000
max-qp = 2000
max-qp-wr = 500
max-sge = 7
mtu = 2048
END
for given in "$dir/given.profile" hdr; do
	measured=$dir/$(basename "$given" .profile)-measured.profile
	check "a profile of $(basename "$given")" ends 0 "try: softhca run --profile $measured" \
		softhca run --profile "$given" --memlock unlimited --clock virtual --clock-cpu 0 -- tupleq-check --profile "$measured"
	check "it is that adapter" alike "$measured" "$given"
	check "an adapter by that profile works" ends 0 "softhca0 port 1: works" \
		softhca run --profile "$measured" -- tupleq-check --no-prices
done
check "with JSON" ends 0 '"works": true' softhca run --memlock unlimited -- tupleq-check --json --profile "$dir/json.profile"
check "JSON alone is printed" test "$(tail -n 2 "$out" | head -n 1)" = "}"
check "a price that can't be measured" ends 0 "works" softhca run --memlock 8M -- tupleq-check --profile "$dir/few.profile"
check "is named" grep -qx "# price-page: not measured" "$dir/few.profile"
check "and such a file is a profile" ends 0 "price-post" softhca options --profile "$dir/few.profile"

check "a file that exists" ends 2 "The file $dir/few.profile exists already, and is not overwritten: name another one." \
	softhca run -- tupleq-check --profile "$dir/few.profile"
check "it is as it was" grep -q "price-post" "$dir/few.profile"
check "a folder that doesn't exist" ends 2 "The profile $dir/none/x can't be written: No such file or directory." \
	softhca run -- tupleq-check --profile "$dir/none/x"
check "no port works" ends 1 "No port works, so there is no profile." softhca run --xrc no -- tupleq-check --profile "$dir/no.profile"
check "no file is left" test ! -e "$dir/no.profile"
check "no such device" ends 1 "No port works, so there is no profile." \
	softhca run -- tupleq-check --device none --profile "$dir/no.profile"
for option in --facts --no-prices; do
	check "with $option" ends 2 "--profile needs the prices" softhca run -- tupleq-check "$option" --profile "$dir/no.profile"
done
exit "$bad"
