#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests locked.py."""

import pathlib
import tempfile
import unittest

import locked

UNLOCKED = "".join(f"void {name}(struct tq_core *core);\n" for name in locked.UNLOCKED)
HEADER = """/* Needs the lock. */
int tq_core_poll(struct tq_core *core,
		 int n);
static inline bool tq_core_is_inline(void)
{
	return true;
}
void tq_other(void);
"""
CALL = "static void call_poll(void)\n{\n\ttq_core_poll(&core, 1);\n}\n"
LINE = "\tENTRY(poll),\n"
CASES = [
    ("called", HEADER, CALL + LINE, []),
    ("called after a preparation", HEADER, CALL + "\tPREPARED(poll, prepare),\n", []),
    ("no line", HEADER, CALL, ["src/transport/proto/core.h:7: tests/transport/unit_entries.c has no line for tq_core_poll()"]),
    ("a line in a comment", HEADER, CALL + "/*\n" + LINE + "*/\n", ["has no line for tq_core_poll()"]),
    ("another call", HEADER, CALL.replace("poll(&", "polls(&") + LINE, ["call_poll() doesn't call tq_core_poll()"]),
    ("no call", HEADER, LINE, ["call_poll() doesn't call tq_core_poll()"]),
    ("not declared", "", CALL + LINE, ["no header declares tq_core_poll()"]),
]


class Locked(unittest.TestCase):
    def findings(self, header, test):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in ((f"{locked.PROTO}/core.h", header), (locked.TEST, test)):
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return list(locked.findings(pathlib.Path(folder)))

    def test_cases(self):
        for name, header, test, ends in CASES:
            with self.subTest(name):
                found = self.findings(UNLOCKED + header, test)
                self.assertEqual(len(found), len(ends))
                for line, end in zip(found, ends):
                    self.assertTrue(line.endswith(end), line)

    def test_unlocked_not_declared(self):
        found = self.findings(HEADER, CALL + LINE)
        self.assertEqual(len(found), len(locked.UNLOCKED))
        self.assertIn("tests/lint/locked.py:1: no header declares tq_core_init()", found)


if __name__ == "__main__":
    unittest.main()
