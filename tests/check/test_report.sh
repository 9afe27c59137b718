#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_report.sh - tupleq-report: what is in it, what isn't, and when a file is written. softhca, tupleq-check and tupleq-report are in
# PATH.
set -uo pipefail

dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
out=$dir/out
# shellcheck source=tests/check.sh
. "$(dirname "$0")/../check.sh"
evidence=$out
host=$(uname -n)
user=jqxvisitor # of whom nobody else speaks

# ends STATUS TEXT COMMAND...: returns true if the command ends with this status and its output has the text.
ends() {
	local wanted=$1 text=$2 status=0
	shift 2
	timeout 100 "$@" >"$out" 2>&1 </dev/null || status=$?
	echo "status $status" >>"$out"
	[ "$status" -eq "$wanted" ] && grep -qF -- "$text" "$out"
}

# answers WORD STATUS TEXT COMMAND...: the same, with this answer of the user.
answers() {
	local answer=$1 wanted=$2 text=$3 status=0
	shift 3
	timeout 100 "$@" >"$out" 2>&1 <<<"$answer" || status=$?
	echo "status $status" >>"$out"
	[ "$status" -eq "$wanted" ] && grep -qF -- "$text" "$out"
}

# lacks FILE WORD: returns true if the file has no such word, in capitals or not.
lacks() {
	! grep -qiwF -- "$2" "$1"
}

report=(softhca run -- tupleq-report --no-prices)

# A job's output, with names of hosts and users in all places that are known.
cat >"$dir/log" <<END
[$host:4242] pml tupleq, rank 3: The connection to rank 1 on host zebranode17 is broken: retry count exceeded.
[okapi-0042.cluster.example.org:17] pml tupleq, rank 4: The connection to rank 3 on host $host is broken.
  Local host:   tapirnode3
  Hostname: lemur9
nodes node[0001-0003] and node0002 and node0001.cluster.example.org, from quokka@cluster.example.org
/home/$user/app, /scratch/$user/x, user $user, ${user^}, at 10.11.12.13, fe80::2e0:4cff:fe68:1 and fe80:0000:0000:0000:0002:c903:0001:0203
mlx5_0 node_guid 0002:c903:0001:0203, ether 00:11:22:33:44:55, 0x0002c90300010203; version 1.2.3 is not an address
END
mkdir -p "$dir/home/$user"
# shellcheck disable=SC2034 # a list of a command's words
as=(env USER="$user" LOGNAME="$user" HOME="$dir/home/$user" SLURM_JOB_NODELIST="node[0001-0003],fossa" OMPI_MCA_pml_tupleq_stats="true"
	SOFTHCA_NODES=2 SECRET_OF_OTHERS=sesame OMPI_MCA_btl_tcp_if_include="10.9.8.7")

check "a report is shown" ends 0 "softhca0 port 1: works" "${as[@]}" "${report[@]}" --log "$dir/log"
cp "$out" "$dir/shown"
for word in "$host" zebranode17 okapi-0042 cluster.example.org tapirnode3 lemur9 node0001 node0002 fossa quokka "$user" 10.11.12.13 10.9.8.7 \
	fe80 0002:c903:0001:0203 00:11:22:33:44:55 0x0002c90300010203 sesame; do
	check "without $word" lacks "$dir/shown" "$word"
done
check "a host has one number" test "$(grep -oE '^\[HOST[0-9]+:4242\]|on host HOST[0-9]+ is broken\.$' "$dir/shown" | grep -oE 'HOST[0-9]+' | sort -u | wc -l)" -eq 1
check "paths stay" grep -qF "/home/USER/app, /scratch/USER/x, user USER, USER, at ADDRESS, ADDRESS and ADDRESS" "$dir/shown"
check "versions stay" grep -qF "version 1.2.3 is not an address" "$dir/shown"
for text in "tupleq-report: " "tupleq-check: tupleq-check " "softhca: softhca " "kernel: Linux " "== Limits" "Max locked memory" "/dev/shm: " \
	"device files: " "softhca0" "  port 1: state 4: ACTIVE" "OMPI_MCA_pml_tupleq_stats=true" "SOFTHCA_NODES=2" "== Counters" \
	"== The last 100 lines of the log" "retry count exceeded." "  ok     XRC"; do
	check "with \"$text\"" grep -qF -- "$text" "$dir/shown"
done
check "no log" ends 0 "No log was given: --log FILE" "${report[@]}"
seq 1000 >"$dir/long"
check "the end of a log" ends 0 "901" "${report[@]}" --log "$dir/long"
check "and no more" lacks "$out" 900
head -c 100000 /dev/urandom >"$dir/binary"
check "a log that is no text" ends 0 "== tupleq-check" "${report[@]}" --log "$dir/binary"
check "a log in the standard input" answers "one line" 0 "one line" "${report[@]}" --log -

check "yes" answers y 0 "report.txt is written" "${report[@]}" "$dir/report.txt"
check "what was shown is what was written" diff <(sed '/^Write this to/,$d' "$out" | sed '$d') "$dir/report.txt"
check "for its owner alone" test "$(stat -c %a "$dir/report.txt")" = 600
sum=$(cksum <"$dir/report.txt")
check "a file that exists" ends 2 "report.txt exists already, and is not overwritten: name another one." "${report[@]}" --yes "$dir/report.txt"
check "nothing is shown first" test "$(wc -l <"$out")" -eq 2
check "it is as it was" test "$(cksum <"$dir/report.txt")" = "$sum"
ln -s "$dir/nowhere" "$dir/link"
check "a link" ends 2 "link exists already" "${report[@]}" --yes "$dir/link"
for answer in n "" yess; do
	check "the answer \"$answer\"" answers "$answer" 1 "Nothing was written." "${report[@]}" "$dir/no.txt"
done
check "no answer" ends 1 "Nothing was written." "${report[@]}" "$dir/no.txt"
check "no file then" test ! -e "$dir/no.txt"
check "without a question" ends 0 "yes.txt is written" "${report[@]}" --yes "$dir/yes.txt"
check "a folder that doesn't exist" ends 1 "none/x can't be written: No such file or directory." "${report[@]}" --yes "$dir/none/x"
check "a log that doesn't exist" ends 2 "The log $dir/none can't be read: No such file or directory." "${report[@]}" --log "$dir/none"
check "two uses of the standard input" ends 2 "The answer can't come from the standard input beside the log" "${report[@]}" --log - "$dir/no.txt"
check "an unknown option" ends 2 "unrecognized arguments: --hepl" "${report[@]}" --hepl
check "a full disk" ends 1 "The report can't be shown: No space left on device." softhca run -- sh -c "tupleq-report --no-prices >/dev/full"
check "its version" ends 0 "tupleq-report " tupleq-report --version
check "its help" ends 0 "usage: tupleq-report" tupleq-report --help

# Where something is missing there is a sentence.
check "no XRC" ends 0 "softhca0 port 1: no, because it has no XRC" softhca run --xrc no -- tupleq-report --no-prices
check "a tupleq-check of another version" sh -c "mkdir -p '$dir/other' && cp \"\$(command -v tupleq-report)\" '$dir/other' &&
	printf '#!/bin/sh\necho tupleq-check 99.1.2\n' >'$dir/other/tupleq-check' && chmod +x '$dir/other/tupleq-check'"
check "is named" ends 0 "The versions of TupleQ differ: " "$dir/other/tupleq-report"
printf '#!/bin/sh\nkill -SEGV $$\n' >"$dir/other/tupleq-check"
check "a tupleq-check that crashes" ends 0 "tupleq-check was ended by signal 11." "$dir/other/tupleq-report"
if [ -e /sys/class/infiniband ]; then
	echo "ok no device # SKIP this machine has adapters"
else
	check "no device" ends 0 "There is no RDMA device in /sys/class/infiniband." tupleq-report --no-prices
	check "no device: the verdict" grep -qF "TupleQ doesn't work on this host, because no RDMA device was found" "$out"
fi
check "nothing in PATH" ends 0 "softhca isn't installed." env PATH=/nonexistent "$(command -v tupleq-report)" --no-prices
exit "$bad"
