# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # find_ucx_perftest sets perftest
# ucx_perftest: UCP on RC and on UD, and the transports themselves (UCT).

: "${clients:?set by tests/run.sh}"
find_ucx_perftest

for tl in rc_v ud_v; do
	for test in tag_lat tag_bw tag_sync_lat stream_bw ucp_am_lat ucp_am_bw ucp_put_lat ucp_put_bw ucp_get; do
		for size in 8 65536; do
			pair "ucp-$tl-$test-$size" 2 env UCX_TLS=$tl UCX_NET_DEVICES=softhca0:1 \
				"${perftest[@]}" -t $test -s $size -n 500 -w 50
		done
	done
	for test in ucp_add ucp_fadd ucp_swap ucp_cswap; do
		pair "ucp-$tl-$test" 2 env UCX_TLS=$tl UCX_NET_DEVICES=softhca0:1 \
			"${perftest[@]}" -t $test -s 8 -n 500 -w 50
	done
done
pair ucp-rc_v-tag_bw-4M 2 env UCX_TLS=rc_v UCX_NET_DEVICES=softhca0:1 "${perftest[@]}" -t tag_bw -s 4194304 -n 20 -w 2
pair ucp-rc_v-tag_lat-sleeping 2 env UCX_TLS=rc_v UCX_NET_DEVICES=softhca0:1 \
	"${perftest[@]}" -t tag_lat -s 8 -n 500 -w 50 -E sleep

for test in am_lat am_bw put_lat put_bw; do
	pair "uct-rc_verbs-$test" 2 "${perftest[@]}" -d softhca0:1 -x rc_verbs -t $test -n 1000 -w 50
done
pair uct-rc_verbs-get 2 "${perftest[@]}" -d softhca0:1 -x rc_verbs -t get -D zcopy -s 4096 -n 1000 -w 50
# (There is no test of swap, because verbs have no swap.)
for test in add_lat fadd cswap; do
	pair "uct-rc_verbs-$test" 2 "${perftest[@]}" -d softhca0:1 -x rc_verbs -t $test -n 1000 -w 50
done
for test in am_lat am_bw; do
	pair "uct-ud_verbs-$test" 2 "${perftest[@]}" -d softhca0:1 -x ud_verbs -t $test -n 1000 -w 50
done
for tl in rc_v ud_v; do
	alone "ucp-$tl-tag_lat-RoCE" --nodes 2 --link-layer ethernet -- "$clients/pair" 1 \
		env UCX_TLS=$tl UCX_NET_DEVICES=softhca0:1 "${perftest[@]}" -t tag_lat -s 8 -n 500 -w 50
done
