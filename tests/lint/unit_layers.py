#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests tests/lint/layers.py on small trees that break a rule each."""
import os
import tempfile
import unittest

from layers import Check, Tree

FOLDERS = {"low": [], "high": ["low"]}


def violations(files, folders=None, exceptions=None, circles=None):
    """Returns the violations in a tree with these files, by path below its root."""
    with tempfile.TemporaryDirectory() as top:
        for name, text in files.items():
            path = os.path.join(top, "src", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        return Check(top, Tree("src", folders or FOLDERS, exceptions or {}, circles or {})).run()


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
        found = violations(tree(low__c_c='#include "a.h"\n#include "high/b.h"\n'))
        self.assertEqual(found, ["src/low/c.c:2: low/ may not include high/ (high/b.h)"])

    def test_include_of_a_single_header(self):
        files = tree(low__c_h="", high__b_c='#include "low/a.h"\n#include "low/c.h"\n', high__b_h="")
        self.assertEqual(violations(files, {"low": [], "high": ["low/a.h"]}),
                         ["src/high/b.c:2: high/ may not include low/ (low/c.h)"])

    def test_include_of_a_folder_outside_the_table(self):
        found = violations(tree(other__x_h="", low__c_c='#include "other/x.h"\n'))
        self.assertEqual(len(found), 2)
        self.assertIn("src/other: this folder is missing in the table", found[0])
        self.assertIn("src/low/c.c:1: other/x.h is in no folder of the table", found[1])

    def test_folder_that_is_gone(self):
        found = violations(tree(), {"low": [], "high": ["low"], "gone": []})
        self.assertEqual(len(found), 1)
        self.assertIn("src/gone: there is no such folder", found[0])

    def test_include_in_a_comment_line_counts_not(self):
        self.assertEqual(violations(tree(low__c_c='// #include "high/b.h"\n')), [])

    def test_foreign_owner(self):
        found = violations(tree(low__c_h="int a_get(void);\n", low__a_h=""))
        self.assertEqual(found, ["src/low/c.h:1: a_get() is of low/a.c: declare it in that file's header"])

    def test_exception(self):
        files = tree(low__c_h="int a_get(void);\n", low__a_h="")
        self.assertEqual(violations(files, exceptions={"low/c.h": "a reason"}), [])

    def test_owner_in_a_family(self):
        self.assertEqual(violations(tree(low__a_h="", low__a_get_h="", low__a_get_c="int a_get2(void)\n{\n}\n")), [])
        self.assertEqual(violations(tree(low__a_h="int a_get(void);\nint a_get2(void);\n",
                                         low__a_more_c="int a_get2(void)\n{\n}\n")), [])

    def test_two_declarations(self):
        found = violations(tree(high__b_h="int a_get(void);\n"), exceptions={"high/b.h": "", "low/a.h": ""})
        self.assertEqual(len(found), 1)
        self.assertIn("a_get() is declared in", found[0])

    def test_comments_and_inline_functions_declare_nothing(self):
        self.assertEqual(violations(tree(low__c_h="/*\nint a_get(void);\n */\n"
                                         "static inline int c_get(void)\n{\n\treturn a_get();\n}\n")), [])

    def test_line_numbers_behind_comments(self):
        found = violations(tree(low__a_h="", low__c_h="/*\n * A comment\n */\nint a_get(void);\n"))
        self.assertTrue(found[0].startswith("src/low/c.h:4: "), found)


def ring(*names, **changes):
    """Returns a tree of files that each call the next one's function, the last one the first's; changes as in tree()."""
    files = {}
    for name, following in zip(names, names[1:] + names[:1]):
        files[f"low/{name}.h"] = f"void {name}_go(void);\n"
        files[f"low/{name}.c"] = f'#include "{following}.h"\n\nvoid {name}_go(void)\n{{\n\t{following}_go();\n}}\n'
    for name, text in changes.items():
        files["low/" + name.rsplit("_", 1)[0] + "." + name.rsplit("_", 1)[1]] = text
    return files


class Circles(unittest.TestCase):
    def found(self, files, most=2):
        return violations(files, {"low": []}, circles={"low": most})

    def test_circle(self):
        self.assertEqual(self.found(ring("a", "b", "c")), [
            "src/low: 3 files depend on each other in a circle, and at most 2 may",
            "src/low/a.c: is in that circle by b_go()",
            "src/low/b.c: is in that circle by c_go()",
            "src/low/c.c: is in that circle by a_go()",
        ])

    def test_circle_within_its_limit(self):
        self.assertEqual(self.found(ring("a", "b", "c"), 3), [])

    def test_none_may_unless_the_tree_says_so(self):
        self.assertIn("src/low: 2 files depend on each other in a circle, and at most 1 may",
                      violations(ring("a", "b"), {"low": []}, circles={"high": 2}))

    def test_circle_through_two_folders(self):
        files = tree(low__a_c='#include "a.h"\n\nint a_get(void)\n{\n\tb_set();\n}\n',
                     high__b_c='#include "b.h"\n\nvoid b_set(int (*fn)(void *arg), int n)\n{\n\ta_get();\n}\n')
        self.assertIn("src: 2 files depend on each other in a circle, and at most 1 may", violations(files, circles={"low": 2}))

    def test_each_circle_that_is_too_large(self):
        found = self.found({**ring("a", "b", "c"), **ring("d", "e", "f"), **ring("g", "h")})
        self.assertEqual([line for line in found if "at most" in line], 2 * found[:1])

    def test_chain(self):
        self.assertEqual(self.found(ring("a", "b", "c", c_c="void c_go(void)\n{\n}\n")), [])

    def test_by_a_pointer(self):
        self.assertEqual(len(self.found(ring("a", "b", "c", c_c="void (*c_table[])(void) = {a_go};\n"
                                            "void c_go(void)\n{\n}\n"))), 4)

    def test_by_an_inline_function(self):
        self.assertEqual(len(self.found(ring("a", "b", "c", c_c="", c_h="static inline void\nc_go(void)\n{\n\ta_go();\n}\n"))), 4)

    def test_what_is_no_use(self):
        for text in ("/* a_go(); */", '"a_go()";', "struct a_go x;", "void a_go(void);"):
            self.assertEqual(self.found(ring("a", "b", "c", c_c=f"{text}\n\nvoid c_go(void)\n{{\n}}\n")), [])


if __name__ == "__main__":
    unittest.main()
