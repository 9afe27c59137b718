#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes ./configure in a fresh checkout.
set -eu
cd "$(dirname "$0")"
exec autoreconf -fi
