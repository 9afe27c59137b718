#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# examples.sh [PREFIX [LIBDIR [COMPONENTS [DOCS]]]]: builds the installed examples against the installed files, as their README says,
# and checks what they print. Leaves out the MPI example if Open MPI's components are not installed. Without PREFIX, the files are those
# of the packages, which programs have to find by themselves.
set -euo pipefail

prefix=${1-/usr} lib=${2-${1-/usr}/lib}
components=${3-$lib/openmpi} docs=${4-$prefix/share/doc/tupleq}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "$*"
	exit 1
}

# says PATTERN FILE: checks that an example printed this.
says() {
	grep -Eq "$1" "$2" || fail "$(cat "$2")" "(it doesn't say: $1)"
}

# commands EXAMPLE: prints the commands of the README for an example.
commands() {
	sed -n "/^## $1\$/,/^## /s/^    //p" "$dir/README.md"
}

# There may be a single CPU, or one that other tests use.
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe OMPI_MCA_mpi_yield_when_idle=1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cp -r "$docs"/examples/. "$dir"
cd "$dir"
make=(make -s)
if [ $# -gt 0 ]; then
	export PATH="$prefix/bin:$PATH" LD_LIBRARY_PATH="$lib" PKG_CONFIG_PATH="$lib/pkgconfig"
	export OMPI_MCA_mca_base_component_path="SYSTEM_DEFAULT:$components"
	make+=(CFLAGS="-O2 -Werror" PKG_CONFIG_FLAGS="--define-variable=prefix=$prefix" pingpong xrc_match)
	[ ! -e "$components/mca_pml_tupleq.so" ] || make+=(overlap)
fi
"${make[@]}"

sh -e -c "$(commands xrc_match)" >"$dir/out"
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

if [ -e overlap ]; then
	sh -e -c "$(commands overlap)" >"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
	says '^sending 1048576 bytes: [0-9]+ us' "$dir/out"
	says '^receiving 1048576 bytes: [0-9]+ us' "$dir/out"
	# As on a busy machine: the message takes longer while its sender computes. The medians are of 40 of 60 loops.
	cat >"$dir/busy.c" <<-'END'
		#include <mpi.h>
		#include <unistd.h>
		int MPI_Wait(MPI_Request *request, MPI_Status *status)
		{
			static int calls;

			if (calls++ / 60 % 2 == 1)
				usleep(30000);
			return PMPI_Wait(request, status);
		}
	END
	mpicc -shared -fPIC "$dir/busy.c" -o "$dir/busy.so"
	# shellcheck disable=SC2016 # the inner shell's
	softhca run --nodes 2 -- sh -c 'mpirun -n 2 --mca pml tupleq env LD_PRELOAD="$1 $LD_PRELOAD" ./overlap 1000' - "$dir/busy.so" \
		>"$dir/out" 2>&1 || fail "$(cat "$dir/out")"
	says '^sending 1000 bytes: [0-9]+ us, of which an unknown part is left for computing: other programs used the CPUs' "$dir/out"
	! grep -q -- '-[0-9]' "$dir/out" || fail "$(cat "$dir/out")"
fi
