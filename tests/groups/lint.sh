# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group lint: checks that need no build. Sourced by run.sh.

takes lint 60
needs lint "${lint_packages[@]}" "${build_packages[@]}" "${test_packages[@]}"

# cppcheck has to see the macros of uthash, but not their variants for other compilers and other uses, each of which would be a further pass.
cppcheck_all() {
	local folder includes=() undefined=() macro

	for folder in include src src/softhca src/transport src/check tests/softhca tests/transport tests/fuzz tests/mpi bench/mpi bench/verbs; do
		includes+=(-I "$folder")
	done
	for macro in NO_DECLTYPE _MSC_VER __BORLANDC__ __ICCARM__ __LCC__ __TURBOC__ __WATCOMC__ __i386__ HASH_DEBUG HASH_BLOOM HASH_EMIT_KEYS \
		HASH_DEFINE_OWN_STDINT HASH_NO_STDINT; do
		undefined+=("-U$macro")
	done
	pass_or_fail cppcheck 900 cppcheck -q -j "$(nproc)" --error-exitcode=1 --std=c11 \
		--enable=warning,portability,performance --inline-suppr --suppress=missingIncludeSystem \
		--include=tests/lint/cppcheck.h --include=/usr/include/uthash.h --include=/usr/include/utlist.h "${undefined[@]}" "${includes[@]}" \
		include src ompi-btl examples tests bench
}

group_lint() {
	local c sh

	cd "$top" || die "there is no $top"
	mapfile -t c < <(find include src ompi-btl examples tests bench -name '*.[ch]' | sort)
	# Scripts are known by their name or by their first line.
	mapfile -t sh < <({
		find tests bench -name '*.sh'
		grep -rlE '^#!/bin/(ba)?sh' .ci autogen.sh tests bench
	} | sort -u)
	wanted clang-format && pass_or_fail clang-format 300 clang-format --dry-run -Werror "${c[@]}"
	wanted cppcheck && cppcheck_all
	wanted shellcheck && pass_or_fail shellcheck 300 shellcheck -x -S warning "${sh[@]}"
	wanted pyflakes && pass_or_fail pyflakes 60 pyflakes3 src/check/tupleq-report.in bench/driver bench/paper tests/lint tests/softhca tests/programs tests/transport
	wanted layers && pass_or_fail layers 60 python3 -B tests/lint/layers.py
	wanted words && pass_or_fail words 60 python3 -B tests/lint/words.py
	wanted sentences && pass_or_fail sentences 60 python3 -B tests/lint/sentences.py
	wanted locked && pass_or_fail locked 60 python3 -B tests/lint/locked.py
	wanted sizes && pass_or_fail sizes 60 python3 -B tests/lint/sizes.py
	wanted unit_sizes && pass_or_fail unit_sizes 60 python3 -B tests/lint/unit_sizes.py
	wanted unit_words && pass_or_fail unit_words 60 python3 -B tests/lint/unit_words.py
	wanted unit_sentences && pass_or_fail unit_sentences 60 python3 -B tests/lint/unit_sentences.py
	wanted unit_layers && pass_or_fail unit_layers 60 python3 -B tests/lint/unit_layers.py
	wanted unit_locked && pass_or_fail unit_locked 60 python3 -B tests/lint/unit_locked.py
	wanted unit_mutate && pass_or_fail unit_mutate 60 python3 -B tests/transport/unit_mutate.py
	# Checks that the mutants apply; the transport group checks that their bugs are found.
	wanted mutants && run "mutants apply" 60 python3 tests/transport/mutate.py check src/transport tests/transport/mutants{,_net}
	wanted readme && pass_or_fail readme 60 tests/readme.sh
	wanted versions && pass_or_fail versions 60 tests/versions.sh
	wanted spec && pass_or_fail spec 60 tests/spec.sh
	wanted usage && pass_or_fail usage 200 tests/usage.sh
	wanted newcomer && pass_or_fail newcomer 60 tests/newcomer.sh
	wanted mandoc && pass_or_fail mandoc 60 mandoc -T lint -W warning src/softhca/man/softhca.7
	return 0
}
