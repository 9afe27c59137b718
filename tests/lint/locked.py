#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that tests/transport/unit_entries.c calls all functions of the protocol that other layers call.

These functions are those whose names begin with tq_core_, as the headers of src/transport/proto declare them. Each needs the
endpoint's lock, but for those in UNLOCKED. unit_entries.c tests that: it has a line ENTRY(NAME) or PREPARED(NAME, ...) for
tq_core_NAME(), and a function call_NAME() that calls it.

Usage: tests/lint/locked.py [TOP]. Prints each missing function as FILE:LINE: SENTENCE; exit status 1 if there are any.
tests/lint/unit_locked.py tests this check.
"""

import pathlib
import re
import sys

import layers

PROTO = "src/transport/proto"
TEST = "tests/transport/unit_entries.c"
# Functions that need no lock: the reason, which a reader of the table judges.
UNLOCKED = {
    "tq_core_init": "nothing else uses the core yet",
    "tq_core_destroy": "nothing else uses the core any more",
    "tq_core_entry_call_done": "calls the user, who may call the library",
    "tq_core_rma_call_done": "calls the user, who may call the library",
    "tq_core_of_msg": "finds the lock",
}
PREFIX = "tq_core_"

_LINE = re.compile(r"^\t(?:ENTRY|PREPARED)\((\w+)", re.M)
_CALL = re.compile(r"^static void call_(\w+)\(void\)\n\{\n(.*?)^\}", re.M | re.S)


def declared(top):
    """Returns the functions that the headers declare, with FILE:LINE."""
    found = {}
    for path in sorted((top / PROTO).rglob("*.h")):
        for name, line, body in layers.functions(path.read_text(encoding="utf-8")):
            if name.startswith(PREFIX) and not body:
                found[name] = f"{path.relative_to(top)}:{line}"
    return found


def findings(top):
    """Yields FILE:LINE: SENTENCE for each function."""
    text = layers.blank_comments((top / TEST).read_text(encoding="utf-8"))
    listed = {PREFIX + name for name in _LINE.findall(text)}
    calls = {PREFIX + name: body for name, body in _CALL.findall(text)}
    functions = declared(top)
    for name, place in functions.items():
        if name in UNLOCKED:
            continue
        if name not in listed:
            yield f"{place}: {TEST} has no line for {name}()"
        elif not re.search(rf"\b{name}\(", calls.get(name, "")):
            yield f"{place}: in {TEST}, call_{name.removeprefix(PREFIX)}() doesn't call {name}()"
    for name in sorted((listed | UNLOCKED.keys()) - functions.keys()):
        yield f"{TEST if name in listed else 'tests/lint/locked.py'}:1: no header declares {name}()"


def main():
    top = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    found = list(findings(top))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
