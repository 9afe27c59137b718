#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_functions.sh - the lists of functions in softhca(7) name each public function of this machine's libibverbs and librdmacm, and what
# they call refused is refused with that error. TEST_BUILD is the build tree.
set -uo pipefail
: "${TEST_BUILD:?set it to the build tree}"

top=$(cd "$(dirname "$0")/../.." && pwd)
page=$top/src/softhca/man/softhca.7
out=$(mktemp)
trap 'rm -f "$out" "$out.all"' EXIT
# shellcheck source=tests/check.sh
. "$top/tests/check.sh"
evidence=$out

section() {
	sed -n '/^\.Sh FUNCTIONS/,/^\.Sh LIMITATIONS/p' "$page"
}

# Prints the functions that the section names.
named() {
	section | sed -nE 's/^\.(It )?Fn ([a-z0-9_]+).*/\2/p'
}

# exported LIBRARY: prints its public functions.
exported() {
	local file

	file=$(gcc -print-file-name="$1")
	[ -e "$file" ] || file=$(ldconfig -p | sed -n "s|.*$1 .*=> ||p" | head -n 1)
	nm -D --defined-only "$file" | awk '$2 != "A" && $3 !~ /PRIVATE/ { sub(/@.*/, "", $3); print $3 }' | sort -u
}

# Prints the functions that the header defines.
inline() {
	echo '#include <infiniband/verbs.h>' | gcc -E - | tr '\n' ' ' | grep -oE 'static inline [^;{(]*\b_?ibv_[a-z0-9_]+ ?\(' |
		grep -oE '_?ibv_[a-z0-9_]+ ?\($' | tr -d ' (' | sort -u
}

# names_all COMMAND...: true if there is such a function, and the section names each.
names_all() {
	"$@" >"$out.all"
	comm -13 <(named | sort -u) "$out.all" >"$out"
	[ -s "$out.all" ] && [ ! -s "$out" ]
}

names_once() {
	named | grep -v '^ibv_resolve_eth_l2_from_gid$\|^rdma_set_option$' | sort | uniq -d >"$out"
	[ ! -s "$out" ]
}

# rdmacm/test_connection.c tests what librdmacm is refused.
refuses() {
	diff -u --label softhca.7 --label refused \
		<(section | sed -nE 's/^\.It (Fn|Dv) ([A-Za-z0-9_]+) Ta Er ([A-Z]+) Ta .*/\2 \3/p' | grep -v '^rdma_' | sort) \
		<(timeout 60 softhca run -- "$TEST_BUILD/tests/softhca/refused" | sort) >"$out" 2>&1
}

check "functions: libibverbs's are in softhca(7)" names_all exported libibverbs.so.1
check "functions: those of verbs.h are in softhca(7)" names_all inline
check "functions: librdmacm's are in softhca(7)" names_all exported librdmacm.so.1
check "functions: each is there once" names_once
check "functions: refused is what is called refused" refuses
exit "$bad"
