#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests words.py."""

import pathlib
import tempfile
import unittest

import words

CASES = [
    ("src/a.c", "/* It opens a comment. */", 1),
    ("src/a.c", "/* Opens. It follows a sentence. */", 1),
    ("src/a.c", "/*\n * Ends here.\n * Such a line begins a sentence.\n */", 1),
    ("src/a.c", "/*\n * A line that goes on with\n * It in capitals.\n */", 0),
    ("src/a.c", 'puts("It is text of a program.");', 0),
    ("src/a.h", "int x; /* It is behind code. */", 1),
    ("src/a.h", "int x; /* Bytes of a message; it is short. */", 0),
    ("tests/a.sh", "# Of two the second.", 1),
    ("doc/a.md", "* The same in a list.", 1),
    ("doc/a.md", "| a | Likewise in a table |", 0),
    ("README.md", "It is the first word.", 1),
    ("README.md", "**A heading.** Such a sentence.", 1),
    ("README.md", "A sentence. **It** is in bold.", 1),
    ("README.md", "**Such** is the first word.", 1),
]


class Words(unittest.TestCase):
    def test_cases(self):
        for name, text, found in CASES:
            with self.subTest(text), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(text + "\n")
                self.assertEqual(len(list(words.findings(pathlib.Path(folder)))), found)


if __name__ == "__main__":
    unittest.main()
