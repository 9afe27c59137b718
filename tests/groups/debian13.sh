# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group debian13: groups of tests in Debian 13, with Open MPI 5.0. Sourced by run.sh.

takes debian13 0 1100
needs debian13 mmdebstrap

debian13_begins=480 # seconds until the first test: a root, its packages and a build

# adopt LOG STATUS: adds up the results of a run of run.sh, which are at the end of its log.
adopt() {
	local log=$1 status=$2 line list='' ok bad skip

	if ! line=$(tail -n 1 "$log" | grep -xE '[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?'); then
		failed=$((failed + 1))
		fails+=("Debian 13: the run ended with status $status:")
		mapfile -t -O ${#fails[@]} fails < <(tail -n 20 "$log" | cut -c1-200 | sed 's/^/    | /')
		return
	fi
	read -r ok _ bad _ skip _ <<<"$line"
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + ${skip:-0}))
	while IFS= read -r line; do
		case $list/$line in
		*/Skipped: | */Failed: | */"Left out because"*) list=${line%% *} ;;
		Skipped:/'    '*) skips+=("Debian 13, ${line#    }") ;;
		Failed:/'        '*) fails+=("${line#    }") ;;
		Failed:/'    '*) fails+=("Debian 13, ${line#    }") ;;
		Left/'    '*) left_out+=("Debian 13, ${line#    }") ;;
		*) list='' ;;
		esac
	done <"$log"
}

group_debian13() {
	local budget='' status=0

	wanted suite || return 0
	in_full "group debian13: groups of tests in Debian 13" || return 0
	if [ "$(id -u)" != 0 ] || ! unshare --mount true 2>/dev/null; then
		skip "all of debian13" "it needs root, and leave to mount file systems"
		return 0
	fi
	if [ -n "${TEST_BUDGET-}" ]; then
		budget=$((TEST_BUDGET - SECONDS))
		if [ "$budget" -lt "$debian13_begins" ]; then
			skip "all of debian13" "$budget s of TEST_BUDGET were left, and it takes $debian13_begins s until its first test"
			return 0
		fi
	fi
	env ${budget:+TEST_BUDGET="$budget"} timeout -k 10 7200 "$top/tests/debian13.sh" </dev/null 2>&1 | tee "$log_dir/suite" |
		sed -u 's/^/    /' || status=${PIPESTATUS[0]}
	if [ "$status" -eq 77 ]; then
		skip "all of debian13" "$(tail -n 1 "$log_dir/suite")"
	else
		adopt "$log_dir/suite" "$status"
	fi
}
