#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ucx.sh BUILD LAYER: runs UCX's example of a client that names its server by an address, of UCX's source package or of the folder
# $UCX_SOURCE, with connections by rdmacm. (ucx_perftest has none: it exchanges addresses of workers.)
set -euo pipefail

build=$1 layer=$2
here=$(cd "$(dirname "$0")" && pwd)
address=10.77.0.1 port=13337

# shellcheck source=tests/sources.sh
. "$here/../sources.sh"
mkdir -p "$build/tests/rdmacm/ucx"
cd "$build/tests/rdmacm/ucx"
if ! examples_source ucx ucx "${UCX_SOURCE-}" examples/ucp_client_server.c; then
	echo "ok ucx # SKIP $missing"
	exit 0
fi
[ client_server -nt "$source/examples/ucp_client_server.c" ] ||
	gcc -w -O2 -o client_server "$source/examples/ucp_client_server.c" -lucp -lucs

export UCX_TLS=rc,ud,self UCX_SOCKADDR_TLS_PRIORITY=rdmacm UCX_NET_DEVICES=softhca0:1
for kind in tag stream am; do
	"$here/../as_test" "ucx $kind" timeout 60 softhca run --nodes 2 --link-layer "$layer" -- "$here/pair" listening -k ./client_server -p $port -c $kind -- \
		./client_server -a $address -p $port -c $kind
done
