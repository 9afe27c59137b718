#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# readme.sh - README.md says of each parameter of the transport what it is for.
set -euo pipefail
cd "$(dirname "$0")/.."
status=0
while read -r name; do
	grep -q "^|.*\`\(pml_tupleq_\)\?$name\`.*|" README.md || {
		echo "README.md doesn't name the parameter $name"
		status=1
	}
done < <(sed -nE 's/^(INT|SIZE|ENUM|BOOL|STRING)\(([a-z_]+),.*/\2/p' src/transport/base/params.def)
exit "$status"
