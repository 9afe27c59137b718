#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests sentences.py."""

import os
import unittest

import sentences

CASES = [
    ('log(j, TQ_LOG_WARN, "The port has gone away.");', ["The port has gone away."]),
    ('log(j, TQ_LOG_WARN,\n "%s:%u has no GID "\n "of index %d.", a, b, c);', ["…:… has no GID of index …."]),
    ('log("Sent %" PRIu64 " bytes of %-3zu.");', ["Sent … bytes of …."]),
    ('log("It took %.1f %% of %s%s.");', ["It took … % of …."]),
    ('log("Look again. %s", help);', []),
    ('log("There is no device. Check the cable. %s", help);', ["There is no device. Check the cable. …"]),
    ('log("The connection was given up: ");', ["The connection was given up:"]),
    ('log("Was that memory freed early?");', ["Was that memory freed early?"]),
    ('log("It is asked for:\\n\\n  %s\\n");', ["It is asked for: …"]),
    ('log("a clause of some words");', []),
    ('log("Too short.");', []),
    ('/* log("A comment of some words."); */', []),
    ('// log("A comment of some words.");', []),
    ('log(j, TQ_LOG_DEBUG, "It is for developers alone.");', []),
    ('log(j, TQ_LOG_INFO, "It is for developers alone.");', []),
    ('log(j, on ? TQ_LOG_WARN : TQ_LOG_DEBUG, "It is a warning sometimes.");', ["It is a warning sometimes."]),
    ('log("It is \\"%s\\": no value | of it.");', ['It is "…": no value \\| of it.']),
    ("log('\"', \"A quote came before it.\");", ["A quote came before it."]),
]

DOCUMENT = """# Title

| sentence | cause | remedy |
| --- | --- | --- |
| The port has gone away. | No cable. | Plug it in. |
| Nobody says this now. | None. | None. |

The end.
"""


class Sentences(unittest.TestCase):
    def test_sentences(self):
        for source, wanted in CASES:
            with self.subTest(source):
                self.assertEqual([sentence for sentence, _ in sentences.sentences(source)], wanted)

    def test_line(self):
        self.assertEqual(sentences.sentences('int x;\n/*\n*/\nlog("The port has gone away.");'), [("The port has gone away.", 4)])

    def test_check(self):
        sources = {"The port has gone away.": "a.c:1", "A new thing has happened.": "b.c:2"}
        self.assertEqual(
            sentences.check(sources, DOCUMENT),
            [
                "b.c:2: doc/cluster.md has no row for: A new thing has happened.",
                "doc/cluster.md:1: The sources have no such sentence: Nobody says this now.",
            ],
        )

    def test_empty_cells(self):
        document = DOCUMENT.replace("Plug it in.", "?").replace("| Nobody says this now. | None. | None. |\n", "")
        self.assertEqual(len(sentences.check({"The port has gone away.": "a.c:1"}, document)), 1)

    def test_renew(self):
        sources = {"The port has gone away.": "a.c:1", "A new thing has happened.": "b.c:2"}
        renewed = sentences.renew(sources, DOCUMENT)
        self.assertIn("| A new thing has happened. | ? | ? |\n| The port has gone away. | No cable. | Plug it in. |\n\nThe end.", renewed)
        self.assertNotIn("Nobody", renewed)
        self.assertEqual(sentences.renew(sources, renewed), renewed)

    def test_tree(self):
        self.assertGreater(len(sentences.collect(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))), 100)


if __name__ == "__main__":
    unittest.main()
