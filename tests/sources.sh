# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Shared by tests that need the sources of a package of Debian.

# source_package PACKAGE FOLDER: downloads the source package into the current folder, with lists of packages of this folder alone, and
# unpacks FOLDER, the one in its archive. The output of apt-get is in download.log. Returns false if the sources can't be had.
source_package() {
	local package=$1 folder=$2 codename mirror apt

	[ ! -d "$folder" ] || return 0
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -n 1)
	echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror:-http://deb.debian.org/debian} $codename main" \
		>sources.list
	mkdir -p apt/lists/partial apt/cache/archives/partial
	apt=(apt-get -q -o "Dir::Etc::SourceList=$PWD/sources.list" -o Dir::Etc::SourceParts=/dev/null
		-o "Dir::State::Lists=$PWD/apt/lists" -o "Dir::Cache=$PWD/apt/cache" -o APT::Sandbox::User=root
		-o Acquire::Retries=1 -o Acquire::http::Timeout=20)
	# An interrupted download, or that of another version, must not be taken for the sources.
	rm -rf "${package}"_* unpack.*
	{
		"${apt[@]}" update && "${apt[@]}" source --download-only "$package" && mkdir unpack.$$ &&
			tar -C unpack.$$ -xf "${package}"_*.orig.tar.* && mv "unpack.$$/$folder" . && rmdir unpack.$$
	} >download.log 2>&1
}

# examples_source PACKAGE MODULE GIVEN FILE: sets `source` to the folder of the sources of the distribution's version of MODULE, as
# pkg-config names it: GIVEN, or what source_package unpacks in the current folder. Returns false, and sets `missing` to why, if
# there is no FILE in it. Two at a time make one download.
examples_source() {
	local package=$1 module=$2 given=$3 file=$4 version

	exec 9>lock
	flock 9
	version=$(pkg-config --modversion "$module")
	source=$given
	if [ -z "$source" ]; then
		source=$PWD/$package-$version
		source_package "$package" "$package-$version" || true
	fi
	[ -e "$source/$file" ] && return 0
	# shellcheck disable=SC2034 # the caller's
	missing="the sources of $module $version's examples can't be had; $PWD/download.log says why"
	return 1
}
