#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Finds sentences that open with a word which refers to something outside of them, in comments and in Markdown files: It, Such,
Likewise, The same, Of. A reader who begins there doesn't know what is meant.

Usage: tests/lint/words.py [TOP]. Prints each as FILE:LINE: SENTENCE; exit status 1 if there are any.
"""

import pathlib
import re
import sys

FOLDERS = ("src", "include", "ompi-btl", "examples", "tests", "bench", "doc")
SUFFIXES = {".c", ".h", ".md", ".py", ".sh"}
# A sentence may be in bold, and may follow one that is.
OPENING = re.compile(r"(?P<before>^|/\* |[.!?](?:\*\*)? )(?:\*\*)?(?P<word>It|Such|Likewise|The same|Of)(?:\*\*)? (?P<rest>.*)")
# The margin before a line of text: of a comment, a list, a table.
MARGIN = {".c": r"(\s*\*|.*/\*)\s*", ".h": r"(\s*\*|.*/\*)\s*", ".sh": r"\s*#\s*", ".py": r"\s*#\s*", ".md": r"\s*([*|>#-]+\s*)?"}


def texts(path):
    """Yields the number and the text of each line of comment; all lines of a Markdown file are text."""
    margin = re.compile(MARGIN[path.suffix])
    ends = True  # the last line ended a sentence
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = margin.match(line)
        if not match:
            ends = True
            continue
        text = line[match.end():].removesuffix("*/").strip()
        begins = ends or match.group().strip() not in ("", "*", "#")
        yield number, text, begins
        ends = not text or text[-1] in ".!?:|"


def findings(top):
    """Yields FILE:LINE: SENTENCE for each sentence."""
    paths = sorted(path for folder in FOLDERS for path in (top / folder).rglob("*") if path.suffix in SUFFIXES)
    for path in paths + sorted(top.glob("*.md")):
        for number, text, begins in texts(path):
            match = OPENING.search(text)
            if match and (begins or match["before"]):
                yield f"{path.relative_to(top)}:{number}: opens with {match['word']}: {match['word']} {match['rest']}"


def main():
    top = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    found = list(findings(top))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
