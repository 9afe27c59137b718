# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by mutants.sh and mutants_net.sh, which source this file. Each has a function judge NAME.

# judge_all FOLDER MOST [NAME...]: judges the named mutants of the folder, or all, at most MOST at a time. Returns 1 if one is not
# caught.
judge_all() {
	local folder=$1 most=$2 status=0 jobs=() job mutant name
	shift 2

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
