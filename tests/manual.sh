#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# manual.sh BUILD: checks that the manual pages of a build name each parameter, counter and function once, and are well-formed.
set -euo pipefail
build=$1
top=$(cd "$(dirname "$0")/.." && pwd)
base=$top/src/transport/base
tupleq=$build/man/man7/tupleq.7
status=0

say() {
	echo "$*"
	status=1
}

# items FILE KIND: the names that the lists of a page explain.
items() {
	sed -n "s/^\.It $2 \([a-z_]*\)$/\1/p" "$1" | sort
}

# names KINDS FILE: the names in one of the library's tables, read in another way than for the pages.
names() {
	sed -nE "s/^($1)\(([a-z_]+),.*/\2/p" "$2" | sort
}

diff -u --label "in params.def" --label "in tupleq(7)" <(names 'INT|INT_CHECKED|SIZE|ENUM|BOOL|STRING' "$base/params.def") \
	<(items "$tupleq" Cm | grep -vE '^(pml|coll|btl)_tupleq_') || status=1
diff -u --label "in counters.def" --label "in tupleq(7)" <(names 'COUNT|LEVEL' "$base/counters.def") <(items "$tupleq" Va | grep -v '^coll_tupleq_') || status=1

# The variables of libfabric: FI_TUPLEQ_NAME, and two of the provider's own.
page=$build/man/man7/fi_tupleq.7
[ ! -e "$page" ] || diff -u --label "in params.def" --label "in fi_tupleq(7)" \
	<(names 'INT|INT_CHECKED|SIZE|ENUM|BOOL|STRING' "$base/params.def" | sed '$akey\ntx_size' | sed 's/.*/FI_TUPLEQ_\U&/' | sort) \
	<(sed -n 's/^\.It Ev //p' "$page" | sort) || status=1

# The parameters in Open MPI: pml_tupleq_NAME and coll_tupleq_NAME, including the components' own.
if [ -e "$build/ompi-btl/mca_pml_tupleq.la" ]; then
	known=$(for framework in pml coll; do ompi_info --parsable --param "$framework" tupleq --level 9; done |
		sed -nE 's/^mca:(pml|coll):tupleq:param:((pml|coll)_tupleq_[a-z_]+):value:.*/\2/p')
	[ -n "$known" ] || say "ompi_info shows no parameter; source build/env.sh first"
	for name in $known; do
		grep -qxE "\.It Cm ($name|${name#pml_tupleq_})" "$tupleq" || say "tupleq(7) doesn't explain $name"
	done
	# All of btl/tupleq's are Open MPI's or the library's: the page explains a few.
	known=$(ompi_info --parsable --param btl tupleq --level 9)
	for name in $(items "$tupleq" Cm | grep '^btl_tupleq_'); do
		[[ $known == *:param:$name:value:* ]] || say "tupleq(7) explains $name, which ompi_info doesn't know"
	done
fi

while read -r symbol; do
	grep -qE "[ *]$symbol\(" "$build/man/man3/libtupleq.3" || say "libtupleq(3) doesn't show $symbol()"
done < <(sed -n 's/^\t\(tq_[a-z_]*\);$/\1/p' "$top/src/transport/tupleq.map")

for page in "$build"/man/man[137]/*.[137]; do
	! grep -HnE '^@[A-Z]+@$|\(null\)' "$page" || say "$page is not filled in"
	mandoc -T lint -W warning "$page" || status=1
done
exit "$status"
