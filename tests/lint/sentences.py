#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the table in doc/cluster.md has each sentence that the libraries and components log, with its cause and remedy.

A sentence is a text in the sources that has four words or more and ends with a full stop, a question mark, a colon, or a value behind a
full stop, or has an empty line in it. Values are shown as an ellipsis. Sentences for developers alone (TQ_LOG_INFO, TQ_LOG_DEBUG) need
no row, and neither do the texts of EXCEPTIONS.

Usage: tests/lint/sentences.py [--write]. Prints each violation as FILE:LINE: SENTENCE; exit status 1 if there are any. --write makes the
table anew from the sources: rows stay that have a sentence, new ones get question marks to fill in, and others go.
tests/lint/unit_sentences.py tests this check.
"""
import os
import re
import sys

TABLE = "doc/cluster.md"
FOLDERS = ("ompi-btl", "src/portals", "src/transport")
HEAD = ("| sentence | cause | remedy |", "| --- | --- | --- |")
UNKNOWN = "?"

# Files whose sentences are not in the log, and why.
EXCEPTIONS = {
    "ompi-btl/pml/report.c": "the report of --mca pml_tupleq_stats true, whose sentences say what to do",
    "src/transport/man/tables.c": "text of the manual",
}

_TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[A-Za-z_]\w*|\s+|.", re.DOTALL)
_VALUE = re.compile(r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[diouxXcspeEfFgG]|%…")


def _tokens(text):
    """Returns (token, line) of each token that is neither blank nor a comment."""
    found, line = [], 1
    for token in _TOKEN.findall(text):
        if not token.isspace() and not token.startswith(("/*", "//")):
            found.append((token, line))
        line += token.count("\n")
    return found


def _shown(text):
    """Returns a text as a user sees it: values are an ellipsis, and no character is special in a table."""
    text = text.replace('\\"', '"').replace("\\n", " ").replace("%%", "\0")
    text = re.sub("…+", "…", _VALUE.sub("…", text)).replace("\0", "%").replace("|", "\\|")
    return " ".join(text.split())


def _is_sentence(said, shown):
    """Returns true if a text, which is shown like that, is one that needs a row."""
    ends = shown.endswith((".", "?", ":")) or (". " in shown and shown.endswith("…")) or "\\n\\n" in said
    return ends and len(shown.split()) >= 4


def _is_for_developers(before):
    """Returns true if these tokens, which stand before a text, are a level that users don't see."""
    return len(before) >= 3 and before[-1] == "," and before[-2] in ("TQ_LOG_DEBUG", "TQ_LOG_INFO") and before[-3] != ":"


def sentences(text):
    """Returns (sentence, line) of each sentence in a source."""
    tokens, found, at = _tokens(text), [], 0
    while at < len(tokens):
        token, line = tokens[at]
        if not token.startswith('"'):
            at += 1
            continue
        first, said = at, ""
        while at < len(tokens) and (tokens[at][0].startswith('"') or tokens[at][0].startswith("PRI")):
            said += tokens[at][0][1:-1] if tokens[at][0].startswith('"') else "…"
            at += 1
        shown = _shown(said)
        if _is_sentence(said, shown) and not _is_for_developers([token for token, _ in tokens[:first]][-3:]):
            found.append((shown, line))
    return found


def collect(top):
    """Returns {sentence: "FILE:LINE"} of all sources, in the order of their folders."""
    found = {}
    for folder in FOLDERS:
        for where, folders, names in sorted(os.walk(os.path.join(top, folder))):
            folders.sort()
            for name in sorted(name for name in names if name.endswith((".c", ".h"))):
                path = os.path.join(where, name)
                relative = os.path.relpath(path, top)
                if relative in EXCEPTIONS:
                    continue
                with open(path, encoding="utf-8") as file:
                    for sentence, line in sentences(file.read()):
                        found.setdefault(sentence, f"{relative}:{line}")
    return found


def rows(document):
    """Returns (first line, last line, {sentence: (cause, remedy)}) of the table. Lines count from 0."""
    lines = document.split("\n")
    first = lines.index(HEAD[0])
    last = first + 2
    found = {}
    while last < len(lines) and lines[last].startswith("| "):
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", lines[last])[1:-1]]
        found[cells[0]] = tuple(cells[1:])
        last += 1
    return first, last, found


def check(sources, document):
    """Returns the violations."""
    _, _, table = rows(document)
    found = [f"{place}: {TABLE} has no row for: {sentence}" for sentence, place in sources.items() if sentence not in table]
    found += [f"{TABLE}:1: The sources have no such sentence: {sentence}" for sentence in table if sentence not in sources]
    for sentence, cells in table.items():
        if len(cells) != 2 or not all(cells) or UNKNOWN in cells:
            found.append(f"{TABLE}:1: The row has no cause or no remedy: {sentence}")
    return found


def renew(sources, document):
    """Returns the document with a table of these sentences."""
    first, last, table = rows(document)
    lines = document.split("\n")
    made = [f"| {sentence} | {' | '.join(table.get(sentence, (UNKNOWN, UNKNOWN)))} |" for sentence in sorted(sources, key=lambda s: s.lstrip("… ").lower())]
    return "\n".join([*lines[:first], *HEAD, *made, *lines[last:]])


def main():
    """Returns the exit status."""
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    path = os.path.join(top, TABLE)
    with open(path, encoding="utf-8") as file:
        document = file.read()
    sources = collect(top)
    if sys.argv[1:] == ["--write"]:
        document = renew(sources, document)
        with open(path, "w", encoding="utf-8") as file:
            file.write(document)
    violations = check(sources, document)
    for violation in violations:
        print(violation)
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main())
