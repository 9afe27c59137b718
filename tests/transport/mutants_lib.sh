# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by mutants.sh and mutants_net.sh, which source this file. Each sets top, the top of the sources, and
# has a function judge NAME.

# compile SOURCE OBJECT INCLUDE [OPTION...]
compile() {
	# shellcheck disable=SC2086,SC2154 # CFLAGS are several words; top is set by those who source this
	${CC:-cc} -std=gnu11 -D_GNU_SOURCE -w ${CFLAGS:--O1} "${@:4}" -I"$3" -I"$top/include" -I"$top/src" -c "$1" -o "$2"
}

# judge_all FOLDER MOST [NAME...]: judges the named mutants of the folder, or all, at most MOST at a time. Returns 1 if one is not
# caught, or if the folder has none of a NAME.
judge_all() {
	local folder=$1 most=$2 status=0 jobs=() job mutant name
	shift 2

	for name; do
		[ -f "$folder/$name" ] && continue
		echo "not ok mutant $name - $(basename "$folder") has no such mutant"
		status=1
	done
	for mutant in "$folder"/*; do
		name=$(basename "$mutant")
		[ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
		[ ${#jobs[@]} -lt "$most" ] || {
			wait "${jobs[0]}" || status=1
			jobs=("${jobs[@]:1}")
		}
		judge "$name" &
		jobs+=($!)
	done
	for job in "${jobs[@]}"; do
		wait "$job" || status=1
	done
	return $status
}
