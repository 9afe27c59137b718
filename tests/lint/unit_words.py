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
    ("tests/a.py", '"""It is a docstring."""', 1),
    ("tests/a.py", 'def f():\n    """Starts here.\n\n    Such a line begins a sentence."""', 1),
    ("tests/a.py", 'def f():\n    """A line that goes on with\n    It in capitals."""', 0),
    ("tests/a.py", 'x = """\nIt is no docstring.\n"""', 0),
    ("tests/a.list", "# It is in a list of programs.", 1),
    ("tests/Makefile.inc", "# It is in a makefile.", 1),
    ("examples/Makefile", "# It is in a makefile.", 1),
    ("configure.ac", "dnl It is for configure.", 1),
    ("configure.ac", "# It is for configure.", 1),
    ("m4/tq_a.m4", "dnl It is in a macro of this project.", 1),
    ("m4/a.m4", "dnl It is in a macro of another project.", 0),
    ("env.sh.in", "# It becomes a script.", 1),
    (".ci/run", "#!/bin/sh\n# SPDX-License-Identifier: BSD-3-Clause\n# It is a script without a suffix.", 1),
    ("tests/corpus", "# It is no script.", 0),
    ("tests/a.c", "/* What is left. */", 1),
    ("tests/a.c", "/* Those that wait. */", 1),
    ("tests/a.c", "/* Waits. Those that wait sleep. */", 1),
    ("tests/a.c", "/* Whether it waits. */", 1),
    ("tests/a.c", "/* Returns what is left. */", 1),
    ("tests/a.c", "/* Waits. Frees those that wait. */", 1),
    ("tests/a.c", "/* Returns how many are left, and those in the queue. */", 0),
    ("tests/a.c", "/* Ends after so many polls. */", 1),
    ("tests/a.py", '"""Returns what is left."""', 1),
    ("tests/a.md", "What is left: nothing.", 0),
    ("tests/softhca/a.c", "/* Returns what is left. */", 1),
    ("src/softhca/Makefile.inc", "# It is in a makefile of the sources.", 1),
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
                path.parent.mkdir(exist_ok=True, parents=True)
                path.write_text(text + "\n")
                self.assertEqual(len(list(words.findings(pathlib.Path(folder)))), found)


if __name__ == "__main__":
    unittest.main()
