#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests tests/lint/layers.py on small trees that break a rule each."""
import os
import tempfile
import unittest

from layers import Check, Tree

FOLDERS = {"low": [], "high": ["low"]}


def violations(files, folders=None, exceptions=None):
    """Returns what the check says of a tree with these files, by path below its root."""
    with tempfile.TemporaryDirectory() as top:
        for name, text in files.items():
            path = os.path.join(top, "src", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        return Check(top, Tree("src", folders or FOLDERS, exceptions or {})).run()


def tree(**changes):
    """Returns a tree without violations, but for what is changed; "low__a_h" is low/a.h."""
    files = {
        "low/a.h": "int a_get(void);\n",
        "low/a.c": '#include "a.h"\n\nint a_get(void)\n{\n\treturn 1;\n}\n',
        "high/b.h": '#include "low/a.h"\nvoid b_set(int (*fn)(void *arg),\n\t   int n);\n',
        "high/b.c": '#include "b.h"\n\nvoid b_set(int (*fn)(void *arg), int n)\n{\n}\n',
    }
    for name, text in changes.items():
        files[name.replace("__", "/").rsplit("_", 1)[0] + "." + name.rsplit("_", 1)[1]] = text
    return files


class Layers(unittest.TestCase):
    def test_good_tree(self):
        self.assertEqual(violations(tree()), [])

    def test_include_upward(self):
        said = violations(tree(low__c_c='#include "a.h"\n#include "high/b.h"\n'))
        self.assertEqual(said, ["src/low/c.c:2: low/ may not include high/ (high/b.h)"])

    def test_include_of_a_folder_outside_the_table(self):
        said = violations(tree(other__x_h="", low__c_c='#include "other/x.h"\n'))
        self.assertEqual(len(said), 2)
        self.assertIn("src/other: this folder is missing in the table", said[0])
        self.assertIn("src/low/c.c:1: other/x.h is in no folder of the table", said[1])

    def test_folder_that_is_gone(self):
        said = violations(tree(), {"low": [], "high": ["low"], "gone": []})
        self.assertEqual(len(said), 1)
        self.assertIn("src/gone: there is no such folder", said[0])

    def test_include_in_a_comment_line_counts_not(self):
        self.assertEqual(violations(tree(low__c_c='// #include "high/b.h"\n')), [])

    def test_foreign_owner(self):
        said = violations(tree(low__c_h="int a_get(void);\n", low__a_h=""))
        self.assertEqual(said, ["src/low/c.h:1: a_get() is of low/a.c: declare it in that file's header"])

    def test_exception(self):
        files = tree(low__c_h="int a_get(void);\n", low__a_h="")
        self.assertEqual(violations(files, exceptions={"low/c.h": "a reason"}), [])

    def test_owner_in_a_family(self):
        self.assertEqual(violations(tree(low__a_h="", low__a_get_h="", low__a_get_c="int a_get2(void)\n{\n}\n")), [])
        self.assertEqual(violations(tree(low__a_h="int a_get(void);\nint a_get2(void);\n",
                                         low__a_more_c="int a_get2(void)\n{\n}\n")), [])

    def test_two_declarations(self):
        said = violations(tree(high__b_h="int a_get(void);\n"), exceptions={"high/b.h": "", "low/a.h": ""})
        self.assertEqual(len(said), 1)
        self.assertIn("a_get() is declared in", said[0])

    def test_comments_and_inline_functions_declare_nothing(self):
        self.assertEqual(violations(tree(low__c_h="/*\nint a_get(void);\n */\n"
                                         "static inline int c_get(void)\n{\n\treturn a_get();\n}\n")), [])

    def test_line_numbers_behind_comments(self):
        said = violations(tree(low__a_h="", low__c_h="/*\n * A comment\n */\nint a_get(void);\n"))
        self.assertTrue(said[0].startswith("src/low/c.h:4: "), said)


if __name__ == "__main__":
    unittest.main()
