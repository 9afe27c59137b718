#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_device.sh - tests/run.sh --device and --hostfile: devices and hosts that aren't there, and two hosts in place of which commands
# run here. TEST_BUILD is the build.
set -uo pipefail
build=${TEST_BUILD:?set it to the build}
run=$(cd "$(dirname "$0")/.." && pwd)/run.sh

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
	timeout 250 "$@" >"$out" 2>&1 </dev/null || status=$?
	echo "status $status" >>"$out"
	[ "$status" -eq "$wanted" ] && grep -qF -- "$text" "$out"
}

check "a device of softhca" ends 0 "softhca/test_cq " "$run" --build "$build" --device softhca0 adapter test_cq
check "what needs softhca" ends 1 "softhca/test_engine: needs softhca: softhca's thread" "$run" --build "$build" --device softhca0 adapter test_engine
check "no such device of softhca" ends 1 "the tests can't run on softhca1. TupleQ doesn't work on this host, because there is no RDMA device called softhca1" \
	"$run" --build "$build" --device softhca1 adapter test_cq
check "no such device" ends 1 "the tests can't run on mlx5_77. TupleQ doesn't work on this host, because " \
	"$run" --build "$build" --device mlx5_77 adapter test_cq
check "a device without XRC" ends 1 "it has no XRC" env SOFTHCA_XRC=no "$run" --build "$build" --device softhca0 adapter test_cq
check "no name" ends 1 "--device wants the name of a device" "$run" --device
check "another group" ends 1 "--device and --hostfile are for group adapter alone" "$run" --device softhca0 unit
check "no hostfile" ends 1 "$dir/none names no host" "$run" --hostfile "$dir/none" adapter
printf '# nobody\n\n' >"$dir/empty"
check "an empty hostfile" ends 1 "$dir/empty names no host" "$run" --hostfile "$dir/empty" adapter

# In place of ssh: HOST COMMAND...
cat >"$dir/rsh" <<'END'
#!/bin/sh
[ "$1" != gone ] || { echo "ssh: connect to host gone: No route to host" >&2 && exit 255; }
shift
exec sh -c "$*"
END
chmod +x "$dir/rsh"
printf 'one slots=2 # here\ntwo\none\n' >"$dir/hosts"
check "two hosts" ends 0 "all on two " env TEST_RSH="$dir/rsh" "$run" --build "$build" --device softhca0 --hostfile "$dir/hosts" adapter "all on" test_cq
check "each once" test "$(grep -c '^all on .* ok ' "$out")" -eq 2
# mpirun's daemons take a host's name from the kernel, so each gets one of its own.
cat >"$dir/named" <<'END'
#!/bin/sh
host=$1
shift
namespaces=--uts
[ "$(id -u)" -eq 0 ] || namespaces="--user --map-root-user --uts"
exec unshare $namespaces sh -c 'hostname "$0"; eval "$*"' "$host" "$@"
END
chmod +x "$dir/named"
if ! "$dir/named" one true 2>"$out"; then
	echo "ok jobs between hosts # SKIP $(tail -n 1 "$out")"
elif [ ! -e "$build/tests/mpi/p2p" ]; then
	echo "ok jobs between hosts # SKIP the build has no Open MPI"
else
	check "jobs between hosts" ends 0 "p2p between the hosts " env TEST_RSH="$dir/named" "$run" --build "$build" --device softhca0 \
		--hostfile "$dir/hosts" adapter "p2p between" "ring between"
	check "all of them" test "$(grep -c 'between the hosts .* ok ' "$out")" -eq 2
fi
printf 'gone\n' >"$dir/hosts"
check "a host that is gone" ends 1 "No route to host" env TEST_RSH="$dir/rsh" "$run" --build "$build" --hostfile "$dir/hosts" adapter
exit "$bad"
