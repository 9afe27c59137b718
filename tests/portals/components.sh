#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds Open MPI's own Portals 4 components (mtl, coll, osc and btl), unmodified, against libportals of a build tree:
#
#   components.sh BUILD DIR
#
# The result is in DIR: mca_mtl_portals4.so and so on. Debian's Open MPI lacks these components, so their sources come from the
# source package of the Open MPI that is installed, or from the folder that OPENMPI_SOURCE names. The exit status 77 says that
# there are no sources.
set -eu

build=$1 dir=$2
top=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$dir"
cd "$dir"

version=$(pkg-config --modversion ompi-c)
include=$(pkg-config --variable=pkgincludedir ompi-c)
system=$(pkg-config --variable=includedir ompi-c)

# shellcheck source=tests/sources.sh
. "$top/tests/sources.sh"
source=${OPENMPI_SOURCE-}
if [ -z "$source" ]; then
	source=$PWD/openmpi-$version
	source_package openmpi "openmpi-$version" || true
fi
if [ ! -d "$source/ompi/mca/mtl/portals4" ]; then
	where=$source
	[ -n "${OPENMPI_SOURCE-}" ] || where="$source (see $PWD/download.log)"
	echo "the sources of Open MPI $version's Portals 4 components can't be had: $where"
	exit 77
fi

# Debian's packages lack three headers that the components include. opal/include/opal_config.h leads to the installed opal_config.h;
# the other two don't depend on the configuration, so -idirafter takes them from the sources.
mkdir -p shim/opal/include
echo '#include <opal_config.h>' >shim/opal/include/opal_config.h

# The components share an endpoint tag, for which the installed Open MPI has no name: mtl/portals4 takes that of the mtl in use.
flags=(-w -O2 -g -fPIC -std=gnu11 -mcx16 -D_GNU_SOURCE -DOMPI_MTL_PORTALS4_FLOW_CONTROL=1
	-DOMPI_PROC_ENDPOINT_TAG_PORTALS4=OMPI_PROC_ENDPOINT_TAG_MTL
	-Ishim "-I$top/include" -isystem "$include" -isystem "$system" -idirafter "$source")
read -ra libs <<<"$(pkg-config --libs ompi-c) -lopen-rte -lopen-pal"
libs+=("$build/src/portals/.libs/libportals.so"
	"-Wl,-rpath,$build/src/portals/.libs:$build/src/transport/.libs:$PWD" "-Wl,-z,defs")

# Builds a component: component KIND FOLDER [LIBRARY...]
component() {
	local kind=$1 folder=$source/$2/$1/portals4
	shift 2
	gcc "${flags[@]}" "-I$folder" -shared -o "mca_${kind}_portals4.so" "$folder"/*.c "$@" "${libs[@]}"
}
component mtl ompi/mca
# These two use a function of mtl/portals4.
component coll ompi/mca "$PWD/mca_mtl_portals4.so"
component osc ompi/mca "$PWD/mca_mtl_portals4.so"
component btl opal/mca
