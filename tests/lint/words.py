#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Finds sentences that a reader can't understand by themselves, in comments, in docstrings and in Markdown files.

* Sentences that open with a word which refers to something outside of them: It, Such, Likewise, The same, Of. A reader who begins
  there doesn't know what is meant.
* In comments and docstrings, sentences without the noun that they are about: "What is left.", "Those that wait.", "Returns what was
  left.", and numbers without a name.

Usage: tests/lint/words.py [TOP]. Prints each as FILE:LINE: SENTENCE; exit status 1 if there are any.

tests/lint/unit_words.py tests this check.
"""

import ast
import pathlib
import re
import sys

FOLDERS = ("src", "include", "ompi-btl", "examples", "tests", "bench", "doc", "debian", ".ci")
# The files outside of these folders. The rest of m4/ is libtool's.
OTHERS = ("*.md", "configure.ac", "Makefile.am", "autogen.sh", "env.sh.in", "tupleq.spec.in", "m4/tq_*.m4")

# A sentence may be in bold, and may follow one that is.
BEGIN = r"(?P<before>^|/\* |[.!?](?:\*\*)? )(?:\*\*)?"
OPENING = re.compile(BEGIN + r"(?P<word>It|Such|Likewise|The same|Of)(?:\*\*)?(?P<rest> .*)")
VAGUE_OPENING = re.compile(BEGIN + r"(?P<word>What|Who|Whether|Those)\b(?P<rest>.*)")
VAGUE_OBJECT = re.compile(BEGIN + r"(?P<word>[A-Z][a-z]+s (?:what|who|those))\b(?P<rest>.*)")
VAGUE_NUMBER = re.compile(r"(?P<before>.)?\b(?P<word>[Ss]o many)\b(?P<rest>.*)")

# The margin before a line of text: of a comment, a list, a table.
C = re.compile(r"(\s*\*|.*/\*)\s*")
HASH = re.compile(r"\s*#\s*")
M4 = re.compile(r"\s*(#|dnl\b)\s*")
MARKDOWN = re.compile(r"\s*([*|>#-]+\s*)?")
MARGIN = {
    **dict.fromkeys((".c", ".h", ".def"), C),
    **dict.fromkeys((".sh", ".py", ".list", ".inc", ".am", ".spec"), HASH),
    **dict.fromkeys((".ac", ".m4"), M4),
    ".md": MARKDOWN,
}
# The comments of tools, which end without a full stop.
DIRECTIVES = ("!", "SPDX-License-Identifier", "shellcheck ")


def margin_of(path):
    """Returns the margin of a file's comments, or None if the file is of no kind that has any."""
    suffix = path.suffix if path.suffix != ".in" else path.with_suffix("").suffix
    if suffix in MARGIN:
        return MARGIN[suffix]
    if path.name == "Makefile":
        return HASH
    if suffix:
        return None
    with open(path, "rb") as script:
        return HASH if script.read(2) == b"#!" else None


def docstrings(text):
    """Returns a dict of the lines of Python's docstrings, by number."""
    lines = {}
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) or ast.get_docstring(node) is None:
            continue
        string = node.body[0].value
        lines |= dict(enumerate(string.value.splitlines(), string.lineno))
    return lines


def texts(path, margin):
    """Yields the number and the text of each line of comment, and whether a sentence begins there. All lines of a Markdown file are
    text."""
    text = path.read_text()
    documented = docstrings(text) if path.suffix == ".py" else {}
    ends = True  # the last line ended a sentence
    for number, line in enumerate(text.splitlines(), 1):
        match = (MARKDOWN if number in documented else margin).match(documented.get(number, line))
        if not match:
            ends = True
            continue
        content = documented.get(number, line)[match.end():].removesuffix("*/").strip()
        begins = ends or match.group().strip() not in ("", "*", "#", "dnl")
        yield number, content, begins
        ends = not content or content[-1] in ".!?:|" or content.startswith(DIRECTIVES)


def files(top):
    """Yields each file that has text, and its margin."""
    paths = [path for folder in FOLDERS for path in (top / folder).rglob("*")]
    paths += [path for pattern in OTHERS for path in top.glob(pattern)]
    for path in sorted(path for path in paths if path.is_file()):
        margin = margin_of(path)
        if margin:
            yield path, margin


def patterns_for(path):
    """Returns the patterns of faults in a file."""
    if path.suffix == ".md":
        return [OPENING]
    return [OPENING, VAGUE_OPENING, VAGUE_OBJECT, VAGUE_NUMBER]


def findings(top):
    """Yields FILE:LINE: SENTENCE for each sentence."""
    for path, margin in files(top):
        name = path.relative_to(top)
        for number, text, begins in texts(path, margin):
            for pattern in patterns_for(path):
                match = pattern.search(text)
                if match and (begins or match["before"]):
                    yield f"{name}:{number}: {match['word']}: {match['word']}{match['rest']}"


def main():
    top = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2])
    found = list(findings(top))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
