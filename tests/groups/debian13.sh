# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # run.sh sets what it shares
# Group debian13: the suite in Debian 13, with Open MPI 5.0. Sourced by run.sh.

takes debian13 0 1800

group_debian13() {
	in_full "the suite in Debian 13 (tests/debian13.sh)" || return 0
	wanted suite && pass_or_fail suite 3600 "$top/tests/debian13.sh"
	return 0
}
