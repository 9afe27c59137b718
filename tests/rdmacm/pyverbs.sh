#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# pyverbs.sh BUILD LAYER: runs the tests of rdma_cm that come with pyverbs.
set -euo pipefail

exec softhca run --link-layer "$2" -- "$(dirname "$0")/cmtests.py"
