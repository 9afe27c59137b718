#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the layers of the sources: which folder may include which, and that headers have one owner.

LAYERS lists trees of folders. A file may include headers of its own folder and of those that its folder names; a folder
names all that it may include, not only the next one down, as a folder or as single headers. Includes are resolved below
the tree's include root, as the compiler does it. A header x.h declares functions of x.c and of x_*.c in its own folder
alone, and no function is declared twice; a tree's exceptions are headers that declare for others, and why.

A file depends on the file that defines a function which it names; x.h, with its inline functions, belongs to x.c. No files
may depend on each other in a circle, because none of them could be read, or tested, without the others. A tree names the folders
in which some still do.

Usage: tests/lint/layers.py [TOP]. Prints each violation as FILE:LINE: SENTENCE; exit status 1 if there are any. For a circle
that is too large each file follows, with the functions that tie it to the others.
tests/lint/unit_layers.py tests this check.
"""
import os
import re
import sys
from dataclasses import dataclass, field

# Folders of src/softhca, from the bottom up. "hca" stands for the files right in it.
_SOFTHCA = {
    "fabric": [],
    "cm": ["fabric"],
    "clock": ["fabric"],
    "hca": ["clock", "fabric"],
    "hca/memory": ["hca", "clock", "fabric"],
    "hca/queues": ["hca/memory", "hca", "clock", "fabric"],
    "hca/execution": ["hca/queues", "hca/memory", "hca", "clock", "cm", "fabric"],
    "hca/objects": ["hca/execution", "hca/queues", "hca/memory", "hca", "clock", "fabric"],
    "verbs": ["hca/objects", "hca/execution", "hca/queues", "hca/memory", "hca", "clock", "cm", "fabric"],
    "cmd": ["cm", "fabric"],
}

# The part of the protocol that the network sees.
_WIRE = ["proto/common/net_ops.h", "proto/common/msg.h", "base"]

# Folders of src/transport, from the bottom up. "proto" and "net" stand for the files right in them.
_TRANSPORT = {
    "base": [],
    "proto/common": ["base"],
    "proto/sender": ["proto/common", "base"],
    # A receiver answers a sender of its own process by a call.
    "proto/receiver": ["proto/sender/answer.h", "proto/common", "base"],
    "proto/matching": ["proto/receiver", "proto/common", "base"],
    "proto": ["proto/matching", "proto/receiver", "proto/sender", "proto/common", "base"],
    "net/adapter": _WIRE,
    "net/peers": ["net/adapter", *_WIRE],
    "net/lanes": ["net/peers", "net/adapter", *_WIRE],
    "net/channel": ["net/lanes", "net/peers", "net/adapter", *_WIRE],
    "net": ["net/channel", "net/lanes", "net/peers", "net/adapter", *_WIRE],
    "ep": ["net", "net/channel", "net/lanes", "net/peers", "net/adapter",
           "proto", "proto/matching", "proto/receiver", "proto/sender", "proto/common", "base"],
    "man": ["base"],
}

# The Open MPI components: each stands by itself, and shares a few files of the PML.
_OMPI = {
    "pml": [],
    "coll": ["pml/series.h", "pml/value.h", "pml/say.h"],
    "shim/opal/mca/threads/pthreads": [],
    "btl": ["pml/series.h", "pml/params.h", "pml/cache.h", "pml/log_peer.h", "pml/claim.h", "pml/say.h"],
}


@dataclass
class Tree:
    """A tree of sources: its include root, and for each folder the folders and headers that it may include."""
    root: str
    folders: dict
    # Headers that declare functions of files with other names: the reason, which a reader of the table judges.
    exceptions: dict = field(default_factory=dict)
    # Folders with files that depend on each other in a circle, and how many may.
    circles: dict = field(default_factory=dict)


LAYERS = [
    Tree("src/softhca", _SOFTHCA, {
        "clock/clock.h": "one interface of turn*.c, spin.c, charge.c, affinity.c and settle.c",
        "verbs/verbs.h": "the entry points that <infiniband/verbs.h> leaves out, a few a file",
        "cmd/cmd.h": "one function of each cmd_*.c",
    }),
    Tree("src/transport", _TRANSPORT, {
        "proto/common/net_ops.h": "what the network reports, each by a function of the file whose matter it is",
    }),
    Tree("src/arith", {"": []}),
    Tree("src/common", {"": []}),
    Tree("src/portals", {"": []}),
    Tree("src/libfabric", {"": []}),
    Tree("src/check", {"": []}),
    Tree("ompi-btl", _OMPI, {
        "coll/coll.h": "the component's state, and the functions of the files that work on it",
    }),
]

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
# A prototype or the head of a definition at the left margin: its name is the last word before the parenthesis.
_FUNCTION = re.compile(r"^(?!static\b|typedef\b|extern\b|return\b|else\b)[a-z_][\w \t*]*?[\s*](\w+)\(", re.M)
# The head of an inline function.
_INLINE = re.compile(r"^static\s+inline\s[\w \t\n*]*?[\s*](\w+)\(", re.M)
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# Text that names no function: strings, and the names of types.
_OTHER = re.compile(r'"(?:\\.|[^"\\\n])*"|\b(?:struct|union|enum)\s+\w+')
_WORD = re.compile(r"\b[A-Za-z_]\w*\b")


def blank_comments(text):
    """Returns the text without comments, with the same lines."""
    return _COMMENT.sub(lambda m: "\n" * m.group(0).count("\n"), text)


def largest_circles(uses):
    """Returns the sets of nodes that reach each other, the largest first; uses: the nodes that each node uses."""
    reached = {}
    for start in uses:
        reached[start], waiting = set(), [start]
        while waiting:
            new = uses[waiting.pop()] - reached[start]
            reached[start] |= new
            waiting += new
    circles = {frozenset({b for b in reached[a] if a in reached[b]}) for a in uses if a in reached[a]}
    return sorted(circles, key=lambda c: (-len(c), sorted(c)))


def heads(text):
    """Yields (match, is_definition) of the functions that a text without comments declares or defines for others."""
    for match in _FUNCTION.finditer(text):
        # The end of the head, past its parentheses.
        depth, at = 0, match.end() - 1
        while at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
            if depth == 0:
                break
        rest = text[at:].lstrip()
        if rest[:1] in (";", "{") or rest.startswith("__attribute__"):
            yield match, rest[:1] == "{"


def functions(text):
    """Yields (name, line, is_definition) of the functions that a file declares or defines for others."""
    text = blank_comments(text)
    for match, body in heads(text):
        yield match.group(1), text.count("\n", 0, match.start()) + 1, body


def names_used(text):
    """Returns the identifiers in a file, but for the names of types and of functions that the file only declares."""
    text = blank_comments(text)
    for match, body in reversed(list(heads(text))):
        if not body:
            text = text[:match.start(1)] + text[match.end(1):]
    return set(_WORD.findall(_OTHER.sub("", text)))


class Check:
    """The violations of one tree."""

    def __init__(self, top, tree):
        self.tree = tree
        self.root = os.path.join(top, tree.root)
        self.violations = []
        self.files = {}
        for folder in tree.folders:
            path = os.path.join(self.root, folder)
            if not os.path.isdir(path):
                self.violations.append(f"{tree.root}/{folder}: there is no such folder; mend the table in tests/lint/layers.py")
                continue
            for name in sorted(os.listdir(path)):
                if name.endswith((".c", ".h", ".def")):
                    with open(os.path.join(path, name), encoding="utf-8") as f:
                        self.files[os.path.join(folder, name)] = f.read()

    def report(self, name, line, sentence):
        self.violations.append(f"{self.tree.root}/{name}:{line}: {sentence}")

    def resolve(self, name, included):
        """Returns the path below the root of what a file includes, or None if it isn't of this tree."""
        for path in (os.path.join(os.path.dirname(name), included), included):
            if os.path.normpath(path) in self.files:
                return os.path.normpath(path)
        return None

    def includes(self):
        for name, text in self.files.items():
            folder = os.path.dirname(name)
            for number, line in enumerate(text.split("\n"), 1):
                match = _INCLUDE.match(line)
                target = self.resolve(name, match.group(1)) if match else None
                if not match:
                    continue
                if not target:
                    if os.path.exists(os.path.join(self.root, match.group(1))):
                        self.report(name, number, f"{match.group(1)} is in no folder of the table in tests/lint/layers.py")
                    continue
                other = os.path.dirname(target)
                if other != folder and not {other, target} & set(self.tree.folders[folder]):
                    self.report(name, number, f"{folder}/ may not include {other}/ ({match.group(1)})")

    def all_in_table(self):
        for path, _, names in os.walk(self.root):
            folder = os.path.relpath(path, self.root)
            if folder != "." and folder not in self.tree.folders and any(n.endswith((".c", ".h")) for n in names):
                self.violations.append(f"{self.tree.root}/{folder}: this folder is missing in the table in tests/lint/layers.py")

    def owners(self):
        defined, declared = {}, {}
        for name, text in self.files.items():
            if name.endswith(".c"):
                defined.update((f, name) for f, _, body in functions(text) if body)
        for name, text in self.files.items():
            if not name.endswith(".h"):
                continue
            for function, line, body in functions(text):
                if body or function not in defined:
                    continue
                if function in declared and declared[function] != name:
                    self.report(name, line, f"{function}() is declared in {declared[function]} already")
                declared[function] = name
                stem, owner = name[:-2], defined[function][:-2]
                if owner != stem and not owner.startswith(stem + "_") and name not in self.tree.exceptions:
                    self.report(name, line, f"{function}() is of {defined[function]}: declare it in that file's header")

    def function_files(self):
        """Returns the file, without its ending, that each function belongs to."""
        owner = {}
        for name, text in self.files.items():
            if name.endswith(".c"):
                owner.update((f, name[:-2]) for f, _, body in functions(text) if body)
            elif name.endswith(".h"):
                owner.update((f, name[:-2]) for f in _INLINE.findall(blank_comments(text)))
        return owner

    def circles(self):
        owner, named, uses = self.function_files(), {}, {}
        for name, text in self.files.items():
            if name.endswith((".c", ".h")):
                named.setdefault(name[:-2], set()).update(names_used(text) & owner.keys())
        for node, names in named.items():
            uses[node] = {owner[f] for f in names} - {node}
        for circle in largest_circles(uses):
            folder = os.path.commonpath([os.path.dirname(node) for node in circle])
            most = self.tree.circles.get(folder, 1)
            if len(circle) <= most:
                continue
            self.violations.append(f"{os.path.normpath(os.path.join(self.tree.root, folder))}: {len(circle)} files depend on each other in a circle, and "
                                   f"at most {most} may")
            for node in sorted(circle):
                ties = sorted(f"{f}()" for f in named[node] if owner[f] in circle - {node})
                self.violations.append(f"{self.tree.root}/{node}.c: is in that circle by {', '.join(ties)}")

    def run(self):
        self.all_in_table()
        self.includes()
        self.owners()
        self.circles()
        return self.violations


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "..")
    violations = [line for tree in LAYERS for line in Check(top, tree).run()]
    for line in violations:
        print(line)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
