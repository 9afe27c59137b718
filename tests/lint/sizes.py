#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks sizes: C files have at most 500 lines, functions at most 60; lines of Markdown at most 120 columns.

Rows of tables, code and addresses are as long as they need to be. The functions are found by the layout that clang-format gives them: a function's braces are alone in the first column.

Usage: tests/lint/sizes.py [TOP]. Prints each violation as FILE:LINE: SENTENCE; exit status 1 if there are any.
tests/lint/unit_sizes.py tests this check.
"""
import os
import re
import sys

FILE_LINES = 500
FUNCTION_LINES = 60
COLUMNS = 120
FOLDERS = ("include", "src", "ompi-btl", "examples", "tests", "bench")

# Files that may be longer, and why. A file that has become short enough is a violation, too.
LONGER = {
    "include/tupleq/tupleq.h": "the library's public interface is one header, and most of it is contracts",
    "tests/fuzz/fuzz_protocol.c": "one interpreter: the steps share the state that the input drives",
    "tests/softhca/test_clock.c": "a list of cases that share their helpers",
    "tests/transport/entries.c": "the user's operations on entries and the checks of them share their model",
}

_END_OF_SIGNATURE = re.compile(r"\)[^;]*$")


def functions(lines):
    """Returns (name, first line, number of lines) of each function, from its signature to its brace. Lines count from 1."""
    found = []
    for at, line in enumerate(lines):
        if line != "{" or not at or not _END_OF_SIGNATURE.search(lines[at - 1]):
            continue
        first = at
        while first and lines[first - 1] and not lines[first - 1].endswith((";", "}", "*/")) and not lines[first - 1].startswith("#"):
            first -= 1
        signature = " ".join(lines[first:at])
        name = re.search(r"(\w+)\)?\(", re.sub(r"__attribute__\(\(.*?\)\)", "", signature))
        end = next((k for k in range(at, len(lines)) if lines[k] == "}"), len(lines) - 1)
        found.append((name[1] if name else "?", first + 1, end - first + 1))
    return found


def check(path, text, longer):
    """Returns the violations of a file. `longer`: the file is one of those that may be longer."""
    lines = text.split("\n")[: text.count("\n")]
    found = []
    if len(lines) > FILE_LINES and not longer:
        found.append(f"{path}:1: The file has {len(lines)} lines, more than {FILE_LINES}.")
    if len(lines) <= FILE_LINES and longer:
        found.append(f"{path}:1: The file has no more than {FILE_LINES} lines, so it needs no exception in sizes.py.")
    found += [
        f"{path}:{first}: The function {name}() has {n} lines, more than {FUNCTION_LINES}."
        for name, first, n in functions(lines)
        if n > FUNCTION_LINES
    ]
    return found


def check_text(path, text):
    """Returns the violations of a Markdown file: lines of a paragraph that are too long. One word is never too long."""
    found, in_code = [], False
    for number, line in enumerate(text.split("\n"), 1):
        in_code ^= line.startswith("```")
        is_code = in_code or line.startswith(("    ", "\t"))
        if len(line) > COLUMNS and not is_code and not line.startswith("|") and " " in line.strip()[:COLUMNS]:
            found.append(f"{path}:{number}: The line has {len(line)} columns, more than {COLUMNS}.")
    return found


def texts(top):
    """Returns the paths of all Markdown files, relative to the top."""
    skipped = ("build", ".git", "results")
    found = []
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in skipped]
        found += [os.path.relpath(os.path.join(folder, name), top) for name in names if name.endswith(".md")]
    return sorted(found)


def sources(top):
    """Returns the paths of all C files, relative to the top."""
    return sorted(
        os.path.relpath(os.path.join(folder, name), top)
        for root in FOLDERS
        for folder, _, names in os.walk(os.path.join(top, root))
        for name in names
        if name.endswith((".c", ".h"))
    )


def main():
    """Returns the exit status."""
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    paths = sources(top)
    found = [f"{path}:1: sizes.py has an exception for this file, which isn't there." for path in LONGER if path not in paths]
    for path in paths:
        with open(os.path.join(top, path), encoding="utf-8") as file:
            found += check(path, file.read(), path in LONGER)
    for path in texts(top):
        with open(os.path.join(top, path), encoding="utf-8") as file:
            found += check_text(path, file.read())
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
