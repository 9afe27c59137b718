# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group softhca: the library under its launcher. Sourced by run.sh.

needs softhca tshark perftest
takes softhca 75

# lines_of LIST: "the N lines of tests/LIST".
lines_of() {
	echo "the $(grep -cvE '^(#|$)' "$top/tests/$1") lines of tests/$1"
}

# run_list FOLDER LISTS PREFIX [ENVIRONMENT...]: runs the lines of tests/FOLDER/LISTS (a pattern) under the launcher. A line is
# "[OPTION of softhca run...] -- PROGRAM [ARGUMENT...]". Programs that match the pattern $without are left out.
run_list() {
	local folder=$1 lists=$2 prefix=$3 line options program label
	shift 3
	while IFS= read -r line; do
		case $line in '' | '#'*) continue ;; esac
		case $line in *'-- '*) ;; *) line="-- $line" ;; esac
		options=${line%%-- *}
		# The separator is the word "--", not the beginning of an option.
		read -ra options <<<"${line%% -- *}"
		case $line in '-- '*) options=() && program=${line#-- } ;; *) program=${line#* -- } ;; esac
		label="$prefix$program${options[*]:+ [${options[*]}]}"
		wanted "$label" || continue
		# shellcheck disable=SC2254 # a pattern
		case $program in ${without-}) continue ;; esac
		read -ra program <<<"$program"
		run "$label" 300 env "$@" softhca run "${options[@]}" -- "$build/tests/$folder/${program[0]}" "${program[@]:1}"
	done < <(cat "$top/tests/$folder"/$lists)
}

group_softhca() {
	local t

	plain_build
	for t in "$top"/tests/softhca/*.sh; do
		[ -x "$t" ] || continue
		wanted "$(basename "$t")" || continue
		run "$(basename "$t")" 300 env TEST_BUILD="$build" SOFTHCA="$build/src/softhca/softhca" \
			LAUNCHER_CLIENT="$build/tests/softhca/launcher_client" "$t"
	done
	run_list softhca "[^t]*.list" ""
	in_turn
	run_list softhca timed.list ""
}
