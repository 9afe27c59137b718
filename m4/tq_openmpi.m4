dnl SPDX-License-Identifier: BSD-3-Clause
dnl TQ_OPENMPI: the Open MPI of the components, with its internal headers, and the flags for MPI programs.
dnl Sets HAVE_OPENMPI (components), HAVE_MPI (programs), OMPI_CPPFLAGS, OMPI_CFLAGS, OMPI_LIBS, MPI_CFLAGS and MPI_LIBS; and
dnl pmixcomponentdir, the folder of PMIx's components (empty with Open MPI 4.1, whose PMIx doesn't read Open MPI's variables).
AC_DEFUN([TQ_OPENMPI], [
AC_ARG_WITH([openmpi],
	[AS_HELP_STRING([--with-openmpi@<:@=PREFIX@:>@],
		[build the Open MPI components, for the Open MPI that pkg-config finds (module ompi-c) or that is
		 installed at PREFIX; its internal headers are needed, as in Debian's libopenmpi-dev (default: if found)])],
	[], [with_openmpi=auto])
have_openmpi=no
pmixcomponentdir=
AS_CASE([$with_openmpi],
	[no], [have_mpi=no],
	[auto|yes], [PKG_CHECK_MODULES([MPI], [ompi-c], [have_mpi=yes], [have_mpi=no])],
	[tq_ompi_pc=
	 for tq_dir in "$with_openmpi"/lib "$with_openmpi"/lib64 "$with_openmpi"/lib/*-linux-gnu*; do
		AS_IF([test -r "$tq_dir/pkgconfig/ompi-c.pc"], [tq_ompi_pc=$tq_dir/pkgconfig])
	 done
	 AS_IF([test -z "$tq_ompi_pc"],
		[AC_MSG_ERROR([there is no Open MPI at $with_openmpi: its lib/pkgconfig has no ompi-c.pc])])
	 PKG_CONFIG_PATH="$tq_ompi_pc:$PKG_CONFIG_PATH"
	 export PKG_CONFIG_PATH
	 PKG_CHECK_MODULES([MPI], [ompi-c], [have_mpi=yes])])
AS_IF([test $have_mpi = yes], [
	tq_ompi_include=`$PKG_CONFIG --variable=pkgincludedir ompi-c`
	tq_ompi_version=`$PKG_CONFIG --modversion ompi-c`
	AC_MSG_CHECKING([for the internal headers of Open MPI $tq_ompi_version])
	AS_IF([test ! -r "$tq_ompi_include/ompi/mca/pml/pml.h"], [AC_MSG_RESULT([no])],
		[AS_CASE([$tq_ompi_version],
			[4.1.*|5.0.*], [AC_MSG_RESULT([$tq_ompi_include])
					have_openmpi=yes],
			[AC_MSG_RESULT([of a series that is not supported; the components are for 4.1 and 5.0])])])
	# As system headers, so that the compiler doesn't warn of them.
	tq_ompi_top=`$PKG_CONFIG --variable=includedir ompi-c`
	OMPI_CPPFLAGS="-isystem $tq_ompi_include -isystem $tq_ompi_top"
	MPI_CFLAGS="-isystem $tq_ompi_top"
	AS_CASE([$tq_ompi_version],
		[4.*], [OMPI_LIBS="$MPI_LIBS -lopen-rte -lopen-pal"],
		[OMPI_LIBS="$MPI_LIBS -lopen-pal"])
	# Open MPI 5 uses an external PMIx. The shim, which comes last, replaces headers that Debian leaves out.
	AS_CASE([$have_openmpi:$tq_ompi_version], [yes:5.*], [
		PKG_CHECK_MODULES([PMIX], [pmix], [],
			[AC_MSG_ERROR([Open MPI $tq_ompi_version needs the headers of PMIx: install libpmix-dev])])
		tq_pmix_include=`AS_ECHO(["$PMIX_CFLAGS"]) | $SED 's/-I/-isystem /g'`
		OMPI_CPPFLAGS="$OMPI_CPPFLAGS $tq_pmix_include -isystem \$(srcdir)/ompi-btl/shim"
		OMPI_LIBS="$OMPI_LIBS $PMIX_LIBS"
		# If the library contains all components, name a folder without any.
		pmixcomponentdir=`$PKG_CONFIG --variable=libdir pmix`/pmix
		AS_IF([test ! -d "$pmixcomponentdir"], [pmixcomponentdir=`$PKG_CONFIG --variable=includedir pmix`])])
	# The atomics of 16 bytes in Open MPI's headers (opal_fifo and opal_lifo) need this instruction, which Open MPI's build used, too.
	OMPI_CFLAGS=
	AS_CASE([$host_cpu], [x86_64], [OMPI_CFLAGS=-mcx16])
])
AS_IF([test $have_openmpi = no && test "x$with_openmpi" != xauto && test "x$with_openmpi" != xno],
	[AC_MSG_ERROR([--with-openmpi: no Open MPI 4.1 or 5.0 with its internal headers (ompi/mca/pml/pml.h) was found])])
AC_ARG_WITH([ompi-components],
	[AS_HELP_STRING([--with-ompi-components=DIR],
		[install the Open MPI components there, as into Open MPI's own directory (default: LIBDIR/openmpi)])],
	[AS_CASE([$withval], [/*], [], [AC_MSG_ERROR([--with-ompi-components wants an absolute path, not "$withval"])])],
	[with_ompi_components='${libdir}/openmpi'])
AC_SUBST([ompicomponentdir], [$with_ompi_components])
AC_SUBST([pmixcomponentdir])
AC_SUBST([OMPI_CPPFLAGS])
AC_SUBST([OMPI_CFLAGS])
AC_SUBST([OMPI_LIBS])
AM_CONDITIONAL([HAVE_OPENMPI], [test $have_openmpi = yes])
AM_CONDITIONAL([HAVE_MPI], [test $have_mpi = yes])
])
