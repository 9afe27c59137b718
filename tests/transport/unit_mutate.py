#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of mutate.py on a source that is made up."""
import contextlib
import io
import os
import tempfile
import unittest

import mutate

SOURCE = r"""
#define BRACE {
#define LIMIT(n) \
	((n) * 2)

struct ops {
	int (*get)(int n);
};

static int get(int n);
static const struct ops ops = {.get = get};
static const int primes[] = {2, 3};

/* get(n) { */
static int get(int n)
{
	char c = '}';

	if (n > 0 &&
	    n < 10)	/* in between */
		return call(n, "}");
	while (n--) {
		/* step */
		step(n);
	}
	return c;
}

int tq_long_name(const struct ops *o,
		 int n)
{
	if (n > 0 && n < 10)
		return o->get(n) - n;
	step(n);
	step(n);
	return - 1;
}
"""


class Applies(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.write("a.c", SOURCE)

    def write(self, name, text):
        path = os.path.join(self.directory.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def read(self, name):
        with open(os.path.join(self.directory.name, name), encoding="utf-8") as file:
            return file.read()

    def mutant(self, *lines):
        return self.write("mutant", "\n".join(["bug: a bug", *lines]) + "\n")

    def run_tool(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = mutate.main(arguments)
        return status, out.getvalue(), err.getvalue()

    def apply(self, *lines):
        return self.run_tool("apply", self.directory.name, self.mutant(*lines))

    def expect(self, before, after, *lines):
        """Expects that the mutant replaces `before`, which is in SOURCE once, by `after` and changes nothing else."""
        self.assertEqual(SOURCE.count(before), 1)
        self.assertEqual(self.apply(*lines), (0, "a.c\n", ""))
        self.assertEqual(mutate.words(self.read("a.c")), mutate.words(SOURCE.replace(before, after)))

    def expect_error(self, line, message, *lines):
        status, out, err = self.apply(*lines)
        self.assertEqual((status, out), (1, ""))
        self.assertEqual(err, f"{os.path.join(self.directory.name, 'mutant')}:{line}: {message}\n")
        self.assertEqual(self.read("a.c"), SOURCE)

    def test_in_its_function_only(self):
        self.expect("n > 0 && n < 10", "n > 0", "in a.c tq_long_name()", "- && n < 10")

    def test_white_space_and_comments(self):
        self.expect(
            "if (n > 0 &&\n\t    n < 10)	/* in between */\n\t\treturn call(n, \"}\");", "", "in a.c get()",
            "- if(n>0 && /* and */ n < 10)", "-", "-return call( n,\"}\") ;")

    def test_white_space_within_a_literal(self):
        self.expect_error(3, 'a.c, get(): not found: call(n, "} ")', "in a.c get()", '- call(n, "} ")', "+ 0")

    def test_whole_tokens(self):
        self.expect_error(3, "a.c, tq_long_name(): not found: >get(n)", "in a.c tq_long_name()", "- >get(n)")
        self.expect_error(3, "a.c, get(): not found: ste", "in a.c get()", "- ste", "+ sto")

    def test_tokens_stay_apart(self):
        self.expect("- n;", "- -n;", "in a.c tq_long_name()", "- n;", "+ -n;")

    def test_replacement_of_several_lines(self):
        self.expect("while (n--) {", "if (n)\n{", "in a.c get()", "- while (n--)", "- {", "+ if (n)", "+ {")

    def test_several_replacements(self):
        lines = ["in a.c get()", "- while (n--)", "+ if (n)", "- return c", "+ return 1", "", "- step(n);",
                 "in a.c tq_long_name()", "- return - 1;", "# a remark", "- o->get"]
        self.assertEqual(self.apply(*lines)[0], 0)
        changed = SOURCE.replace("while (n--)", "if (n)").replace("return c;", "return 1;")
        changed = changed.replace("\t\tstep(n);", "").replace("return - 1;", "").replace("o->get", "")
        self.assertEqual(mutate.words(self.read("a.c")), mutate.words(changed))

    def test_several_files(self):
        self.write("b.h", SOURCE)
        status, out, _ = self.apply("in b.h get()", "- return c;", "in a.c get()", "- return c;")
        self.assertEqual((status, out), (0, "a.c\nb.h\n"))
        self.assertNotIn("return c;", self.read("a.c") + self.read("b.h"))

    def test_head_of_a_function(self):
        self.expect("int n)\n{\n\tif (n > 0 && n", "long n)\n{\n\tif (n > 0 && n", "in a.c tq_long_name()",
                    "- int n)", "+ long n)")

    def test_file_scope(self):
        self.expect("{2, 3}", "{2}", "in a.c file scope", "- {2, 3}", "+ {2}")

    def test_macro(self):
        self.assertEqual(self.apply("in a.c file scope", "- ((n) * 2)", "+ ((n) *", "+ 3)")[0], 0)
        self.assertIn("\\\n\t ((n) * 3) \n", self.read("a.c"))

    def test_file_scope_has_no_functions(self):
        self.expect_error(3, "a.c, file scope: not found: return c;", "in a.c file scope", "- return c;")

    def test_not_found(self):
        self.expect_error(5, "a.c, get(): not found: return d;", "in a.c get()", "- return c;", "",
                          "- return", "-     d;")

    def test_found_twice(self):
        line = SOURCE[: SOURCE.index("step(n);\n\tstep(n);")].count("\n") + 1
        self.expect_error(3, f"a.c, tq_long_name(): found 2 times (lines {line}, {line + 1}): step(n);",
                          "in a.c tq_long_name()", "- step(n);")

    def test_no_function(self):
        self.expect_error(3, "a.c, put(): there is no function put()", "in a.c put()", "- step(n);")
        self.expect_error(3, "a.c, ops(): there is no function ops()", "in a.c ops()", "- get")

    def test_function_twice(self):
        twice = "#ifdef A\nint f(void)\n{\n}\n#else\nint f(void)\n{\n}\n#endif\n"
        self.write("b.c", twice)
        self.expect_error(3, "b.c, f(): the function f() is defined 2 times", "in b.c f()", "- void")

    def test_no_file(self):
        self.expect_error(3, "c.c: No such file or directory", "in c.c get()", "- step(n);")

    def test_overlap(self):
        self.expect_error(5, "a.c: overlaps the replacement of line 3", "in a.c get()",
                          "- while (n--)", "", "- n--")

    def test_malformed(self):
        place = "in a.c get()"
        self.expect_error(2, 'no line "in FILE FUNCTION()" precedes it', "- step(n);")
        self.expect_error(3, 'no line with "-" precedes it', place, "+ step(n);")
        self.expect_error(3, "there is no text to be replaced", place, "- /* step */", "+ 1")
        self.expect_error(3, "the replacement is what it replaces", place, "- step(n)", "+ step( n )")
        self.expect_error(2, "not understood: in a.c get", "in a.c get", "- step(n)")
        self.expect_error(2, "not understood: bug: another", "bug: another", place, "- step(n)")
        self.expect_error(2, "not understood: cases: b", "cases: b", place, "- step(n)")
        self.expect_error(2, "no replacement follows", place)

    def test_bug_is_named(self):
        path = self.write("mutant", "case: a\nin a.c get()\n- step(n);\n")
        status, _, err = self.run_tool("apply", self.directory.name, path)
        self.assertEqual(status, 1)
        self.assertIn('mutant:1: no line "bug: ..."', err)

    def test_check(self):
        os.mkdir(os.path.join(self.directory.name, "net"))
        os.mkdir(os.path.join(self.directory.name, "proto"))
        good = self.write("net/good", "bug: a bug\ncaught: b\nin a.c get()\n- step(n);\n")
        bad = self.write("net/bad", "bug: a bug\ncaught: b\nin a.c put()\n- step(n);\n")
        better = self.write("proto/better", "bug: a bug\ncase: b\nin a.c get()\n- step(n);\n")
        net, proto = os.path.dirname(good), os.path.dirname(better)
        self.assertEqual(self.run_tool("check", self.directory.name, proto), (0, f"ok {better}\n", ""))
        status, out, _ = self.run_tool("check", self.directory.name, net, proto)
        self.assertEqual(status, 1)
        self.assertEqual(out, f"ok {good}\nok {better}\n"
                              f"not ok {bad}:4: a.c, put(): there is no function put()\n")
        self.assertEqual(self.read("a.c"), SOURCE)
        self.assertEqual(self.run_tool("check", self.directory.name, good)[0], 1)

    def test_usage(self):
        for arguments in [], ["apply", "a"], ["check", "a"], ["else", "a", "b"], ["apply", "a", "b", "c"]:
            status, out, err = self.run_tool(*arguments)
            self.assertEqual((status, out), (2, ""))
            self.assertIn("mutate.py apply SOURCES MUTANT", err)


if __name__ == "__main__":
    unittest.main()
