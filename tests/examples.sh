#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# examples.sh PREFIX [LIBDIR [COMPONENTS [DOCS]]]: builds the installed examples against the installed files, and checks what they
# print. Leaves out the MPI example if Open MPI's components are not installed.
set -euo pipefail

prefix=$1 lib=${2-$1/lib}
components=${3-$lib/openmpi} docs=${4-$1/share/doc/tupleq}
dir=$(mktemp -d)
server=
cleanup() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT

fail() {
	echo "$*"
	exit 1
}

# says PATTERN FILE: checks that an example printed this.
says() {
	grep -Eq "$1" "$2" || fail "$(cat "$2")" "(it doesn't say: $1)"
}

export PATH="$prefix/bin:$PATH" LD_LIBRARY_PATH="$lib" PKG_CONFIG_PATH="$lib/pkgconfig"
export OMPI_MCA_mca_base_component_path="SYSTEM_DEFAULT:$components"
examples=(pingpong xrc_match)
[ ! -e "$components/mca_pml_tupleq.so" ] || examples+=(overlap)

cp "$docs"/examples/* "$dir"
gzip -dqf "$dir"/*.gz 2>/dev/null || true # as packages may compress them
make -s -C "$dir" CFLAGS="-O2 -Werror" PKG_CONFIG_FLAGS="--define-variable=prefix=$prefix" "${examples[@]}"

softhca run -- "$dir/xrc_match" >"$dir/out"
says 'receive 0 holds "message with tag 0"' "$dir/out"
says 'receive 1 holds "message with tag 1"' "$dir/out"

# Both processes are in one fabric. The client tries again until the server listens.
cat >"$dir/pair" <<'END'
port=$1 dir=$2
SOFTHCA_NODE=0 "$dir/pingpong" "$port" >"$dir/server" 2>&1 &
server=$!
until SOFTHCA_NODE=1 "$dir/pingpong" "$port" localhost >"$dir/client" 2>&1; do
	grep -q "nobody answers" "$dir/client" && kill -0 "$server" && sleep 0.1 || exit 1
done
wait "$server"
END
# Try another port if the server says that this one is in use.
for port in $(shuf -i 20000-29999 -n 5); do
	status=0
	softhca run --nodes 2 -- sh "$dir/pair" "$port" "$dir" || status=$?
	grep -q "in use" "$dir/server" || break
done
[ "$status" -eq 0 ] || fail "pingpong: status $status" "$(cat "$dir/server" "$dir/client")"
says '^1000 rounds' "$dir/server"
# The adapter matched all messages except the first few, which come before the tuple has its queue.
says '^(9[0-9][0-9]|1000) messages that the HCA matched' "$dir/client"

if [ -e "$components/mca_pml_tupleq.so" ]; then
	softhca run --nodes 2 --memlock unlimited -- mpirun --allow-run-as-root --oversubscribe \
		--mca mpi_yield_when_idle 1 -n 2 --mca pml tupleq "$dir/overlap" 300000 >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
	says '^sending 300000 bytes: [0-9]+ us' "$dir/out"
	says '^receiving 300000 bytes: [0-9]+ us' "$dir/out"
fi
