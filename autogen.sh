#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# autogen.sh: creates ./configure in a fresh checkout, and takes no options.
set -eu
cd "$(dirname "$0")"

case ${1-} in
"") ;;
-h | --help)
	sed -n '3s/^# //p' "$0"
	exit 0
	;;
*)
	echo "autogen.sh: it takes no options; give those to ./configure" >&2
	exit 1
	;;
esac

missing=
for tool in autoconf automake libtoolize make pkg-config; do
	command -v "$tool" >/dev/null || missing="$missing $tool"
done
if [ -n "$missing" ]; then
	echo "autogen.sh: these programs are missing:$missing" >&2
	echo "On Debian run: sudo apt-get install autoconf automake libtool make pkg-config" >&2
	exit 1
fi
exec autoreconf -fi
