dnl SPDX-License-Identifier: BSD-3-Clause
dnl Compiler options of all products.

dnl TQ_WARNINGS: the warnings that the code is kept free of, in WARN_CFLAGS.
AC_DEFUN([TQ_WARNINGS], [
AC_ARG_ENABLE([werror],
	[AS_HELP_STRING([--enable-werror], [a warning of the compiler is an error (for CI)])])
WARN_CFLAGS="-Wall -Wextra -Wshadow -Wstrict-prototypes"
AS_IF([test "x$enable_werror" = xyes], [WARN_CFLAGS="$WARN_CFLAGS -Werror"])
AC_SUBST([WARN_CFLAGS])
])

dnl TQ_TUNING: the way to clear structs, in TUNING_CFLAGS. gcc for x86 clears structs of more than 32 bytes by "rep stos", which
dnl takes longer to start than a whole loop of vector stores takes. Each message clears three structs.
AC_DEFUN([TQ_TUNING], [
AC_MSG_CHECKING([for an option to clear structs by vector stores])
TUNING_CFLAGS="-mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign"
tq_save_CFLAGS=$CFLAGS
CFLAGS="$CFLAGS $TUNING_CFLAGS"
AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
	[AC_MSG_RESULT([no])
	 TUNING_CFLAGS=])
CFLAGS=$tq_save_CFLAGS
AC_SUBST([TUNING_CFLAGS])
])

dnl TQ_SANITIZER: --enable-sanitizer=LIST, in SANITIZER_CFLAGS. The runtime is a shared object, so that a program and its
dnl preloaded library share one.
AC_DEFUN([TQ_SANITIZER], [
AC_ARG_ENABLE([sanitizer],
	[AS_HELP_STRING([--enable-sanitizer=LIST],
		[instrument with address, undefined, thread or address,undefined])],
	[], [enable_sanitizer=no])
AS_CASE([$enable_sanitizer],
	[no], [SANITIZER_CFLAGS=],
	[address|undefined|thread|address,undefined],
	[SANITIZER_CFLAGS="-fsanitize=$enable_sanitizer -fno-omit-frame-pointer"
	 AS_CASE([$enable_sanitizer], [*undefined*],
		[SANITIZER_CFLAGS="$SANITIZER_CFLAGS -fno-sanitize-recover=undefined"])
	 # ThreadSanitizer doesn't follow fences, and gcc warns of each. Ours order only accesses that are atomic.
	 AS_CASE([$enable_sanitizer], [thread], [SANITIZER_CFLAGS="$SANITIZER_CFLAGS -Wno-tsan"])],
	[AC_MSG_ERROR([--enable-sanitizer=$enable_sanitizer: it takes address, undefined, thread or address,undefined])])
AS_IF([test -n "$SANITIZER_CFLAGS"], [
	AC_MSG_CHECKING([whether the compiler links with $SANITIZER_CFLAGS])
	tq_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS $SANITIZER_CFLAGS"
	AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 AC_MSG_ERROR([the runtime of -fsanitize=$enable_sanitizer is missing: install it, or leave the option out])])
	CFLAGS=$tq_save_CFLAGS
])
AC_SUBST([SANITIZER_CFLAGS])
])

dnl TQ_DEBUG: --enable-debug, in CHECK_CPPFLAGS. Checks that cost time at each call: so far, that functions which need the
dnl endpoint's lock are called with the lock held (src/transport/base/lock.h). Instrumented builds have these checks, too.
AC_DEFUN([TQ_DEBUG], [
AC_ARG_ENABLE([debug],
	[AS_HELP_STRING([--enable-debug],
		[make checks that cost time at each call: that the endpoint's lock is held where it must be])],
	[], [enable_debug=no])
CHECK_CPPFLAGS=
AS_IF([test "x$enable_debug" = xyes || test -n "$SANITIZER_CFLAGS"], [CHECK_CPPFLAGS=-DTQ_LOCK_CHECKS])
AC_SUBST([CHECK_CPPFLAGS])
])

dnl TQ_LTO: --disable-lto. The libraries are optimised at link time, for LTO_CFLAGS: a message goes through some thirty
dnl functions of a dozen files, and calls between these files were a tenth of the instructions. The objects hold usual code,
dnl too (-ffat-lto-objects, which clang before 17 only warns of), because they are also archived, and linked without these
dnl options. Instrumented builds don't optimise at link time, because their reports are easier to read without.
AC_DEFUN([TQ_LTO], [
AC_ARG_ENABLE([lto],
	[AS_HELP_STRING([--disable-lto], [do not optimise the libraries at link time])],
	[], [enable_lto=auto])
LTO_CFLAGS=
AS_IF([test "x$enable_lto" = xyes && test -n "$SANITIZER_CFLAGS"],
	[AC_MSG_ERROR([--enable-lto and --enable-sanitizer exclude each other])])
AS_IF([test "x$enable_lto" != xno && test -z "$SANITIZER_CFLAGS"], [
	AC_MSG_CHECKING([whether the compiler optimises at link time])
	LTO_CFLAGS="-flto=auto -ffat-lto-objects"
	tq_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS $LTO_CFLAGS -Werror"
	AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 LTO_CFLAGS=
		 AS_IF([test "x$enable_lto" = xyes],
			[AC_MSG_ERROR([--enable-lto: $CC takes no -flto=auto -ffat-lto-objects])])])
	CFLAGS=$tq_save_CFLAGS
])
AC_SUBST([LTO_CFLAGS])
])

dnl TQ_STACK: a bound for the stack that a function of the libraries uses, in STACK_CFLAGS and, for functions that are put
dnl together at link time, STACK_LDFLAGS. A program's threads may have PTHREAD_STACK_MIN bytes (16 KiB), of which a dozen
dnl functions of a message need their share, so no function has a frame of more than 1 KiB, or one whose size is known only at
dnl run time. Builds without optimisation and instrumented ones have larger frames, and no bound. Besides, the libraries'
dnl calls are bound when they are loaded: to bind one when it is made takes up to 4 KiB, where the stack may be deepest.
AC_DEFUN([TQ_STACK], [
STACK_CFLAGS= STACK_LDFLAGS=-Wl,-z,now
AS_CASE([" $CFLAGS $SANITIZER_CFLAGS "], [*" -O0 "*|*-fsanitize=*], [], [
	AC_MSG_CHECKING([for an option that bounds the frames of functions])
	tq_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS -Werror -Wframe-larger-than=1024 -Wvla"
	AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
		[AC_MSG_RESULT([yes])
		 STACK_CFLAGS="-Wframe-larger-than=1024 -Wvla"
		 STACK_LDFLAGS="$STACK_LDFLAGS -Wc,-Wframe-larger-than=1024"
		 AS_IF([test "x$enable_werror" = xyes], [STACK_LDFLAGS="$STACK_LDFLAGS -Wc,-Werror"])],
		[AC_MSG_RESULT([no])])
	CFLAGS=$tq_save_CFLAGS
])
AC_SUBST([STACK_CFLAGS])
AC_SUBST([STACK_LDFLAGS])
])
