#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests sizes.py."""

import unittest

import sizes


def function(head, lines):
    """Returns the text of a function with `lines` lines."""
    inside = lines - head.count("\n") - 3
    return f"{head}\n{{\n" + "\tx();\n" * inside + "}\n"


HEADS = [
    "void plain(int a)",
    "static struct thing *\nreturns_pointer(const char *name,\n\t\tint b)",
    "int main(void)",
    "static inline __attribute__((always_inline)) int marked(void)",
    "int (ibv_reg_mr)(void *addr)",
]
NOT_FUNCTIONS = [
    "struct long_one\n{\n" + "\tint x;\n" * 99 + "};\n",
    "static const int table[] = {\n" + "\t1,\n" * 99 + "};\n",
]


class Sizes(unittest.TestCase):
    def test_functions(self):
        for head in HEADS:
            with self.subTest(head):
                before = "/* A comment. */\n"
                self.assertEqual(sizes.check("a.c", before + function(head, 60), False), [])
                (found,) = sizes.check("a.c", before + function(head, 61), False)
                self.assertRegex(found, r"^a\.c:2: The function \w+\(\) has 61 lines")

    def test_names(self):
        for name, head in zip(("plain", "returns_pointer", "main", "marked", "ibv_reg_mr"), HEADS):
            self.assertEqual(sizes.functions(function(head, 9).split("\n"))[0][0], name)

    def test_what_is_no_function(self):
        for text in NOT_FUNCTIONS:
            self.assertEqual(sizes.check("a.c", text, False), [])

    def test_two_functions(self):
        text = function("void a(void)", 40) + "\n" + function("void b(void)", 40)
        self.assertEqual(sizes.check("a.c", text, False), [])

    def test_files(self):
        self.assertEqual(sizes.check("a.h", "int x;\n" * 500, False), [])
        self.assertEqual(len(sizes.check("a.h", "int x;\n" * 501, False)), 1)
        self.assertEqual(sizes.check("a.h", "int x;\n" * 501, True), [])
        self.assertEqual(len(sizes.check("a.h", "int x;\n" * 500, True)), 1)

    def test_lines_of_text(self):
        word = "word "
        self.assertEqual(sizes.check_text("a.md", (word * 24).rstrip() + "\n"), [])
        (found,) = sizes.check_text("a.md", "short\n" + word * 25)
        self.assertRegex(found, r"^a\.md:2: The line has 125 columns")
        for text in ("| " + word * 30, "    " + word * 30, "```\n" + word * 30 + "\n```\n", "x" * 200):
            self.assertEqual(sizes.check_text("a.md", text), [])


if __name__ == "__main__":
    unittest.main()
