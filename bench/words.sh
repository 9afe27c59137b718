# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# Checks the words of a part, before packages or a build are looked at. Sourced by run.sh, mpi/run.sh and verbs/run.sh, with the folder
# bench in $bench.

# known_parts: prints the names of the parts that the driver has.
known_parts() {
	# shellcheck disable=SC2154 # set where this is sourced
	sed -n '/^PARTS = {/,/^}/s/^    "\([a-z]*\)":.*/\1/p' "$bench/driver/__main__.py"
}

# known_options PART: prints the options of the part's program, from its source.
known_options() {
	case $1 in
	verbs) sed -n 's/.*{"\([a-z-]*\)", '"'"'[a-z]'"'"',.*/--\1/p' "$bench/verbs/verbs_bench.c" ;;
	paper) grep -oE '"--[a-z-]+"' "$bench/paper/__main__.py" | tr -d '"' ;;
	*) grep -oE '"--[a-z-]+"' "$bench/driver/__main__.py" | tr -d '"' && echo --no-link ;;
	esac
}

# check_words PART [WORD...]: ends the script with a sentence if a word before "--" is an option that the part hasn't. If Python is there,
# the part's own parser looks at all words.
check_words() (
	part=$1
	shift
	known=$(known_options "$part" | sort -u)
	for word; do
		case $word in
		--) break ;;
		*" "*) continue ;; # options of another program, as one word
		-[!0-9]*) ;;
		*) continue ;;
		esac
		if ! echo "$known" | grep -qxe "${word%%=*}"; then
			echo "$part has no option ${word%%=*}; it has: $(echo "$known" | xargs), and --help" >&2
			exit 1
		fi
	done
	[ "$part" != verbs ] && command -v python3 >/dev/null || exit 0
	export BENCH_WORDS=1 PYTHONDONTWRITEBYTECODE=1
	case $part in
	paper) python3 "$bench/paper" "$@" ;;
	*) python3 "$bench/driver" "$part" "$@" ;;
	esac
)
