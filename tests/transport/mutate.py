#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Applies mutants: named replacements in C sources. README.md describes their format.

    mutate.py apply SOURCES MUTANT      changes the files below SOURCES and prints their names
    mutate.py check SOURCES FOLDER...   changes nothing; prints "ok" or "not ok" for each mutant in the folders
"""
import collections
import os
import re
import sys

TOKEN = re.compile(
    r"""(?P<space>\s+|\\\n|/\*.*?\*/|//[^\n]*)
    |"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'    # literals
    |\.?\d(?:[eEpP][+-]|[\w.])*|[A-Za-z_]\w*  # numbers, identifiers
    |->|\+\+|--|<<=?|>>=?|&&|\|\||\#\#|\.\.\.|[-+*/%&|^!=<>]=|.""",
    re.DOTALL | re.VERBOSE,
)
DIRECTIVE = re.compile(r"(?:\\.|[^\\\n])*", re.DOTALL)
FIELDS = ("bug", "case", "caught")

Token = collections.namedtuple("Token", "text start end directive")
Function = collections.namedtuple("Function", "name first last")
Replacement = collections.namedtuple("Replacement", "line file function old new")


class Wrong(Exception):
    """A mutant that is malformed or doesn't apply, and where."""


def tokenize(source):
    """Returns the tokens of C source, without white space and comments."""
    tokens, directive_end = [], 0
    for found in TOKEN.finditer(source):
        if found.lastgroup == "space":
            continue
        start = found.start()
        if found.group() == "#" and not source[source.rfind("\n", 0, start) + 1 : start].strip():
            directive_end = DIRECTIVE.match(source, start).end()
        tokens.append(Token(found.group(), start, found.end(), start < directive_end))
    return tokens


def words(text):
    return [token.text for token in tokenize(text)]


def functions(tokens):
    """Returns the function definitions, each from its return type to its closing brace."""
    found, braces, parentheses = [], 0, 0
    first = name = body = before = None
    for i, token in enumerate(tokens):
        if token.directive:
            continue
        if first is None:
            first = i
        if token.text == "(":
            if not braces and not parentheses:
                name = before
            parentheses += 1
        elif token.text == ")":
            parentheses -= 1
        elif token.text == "{":
            if not braces:
                body = before == ")"
            braces += 1
        elif token.text == "}":
            braces -= 1
            if not braces and body:
                found.append(Function(name, first, i + 1))
                first = None
        elif token.text == ";" and not braces:
            first = None
        before = token.text
    return found


def file_scope(defined, n):
    """Returns the ranges of n tokens that belong to no function."""
    starts = [0] + [function.last for function in defined]
    ends = [function.first for function in defined] + [n]
    return list(zip(starts, ends))


def scope_of(replacement, tokens):
    """Returns the ranges of tokens in which the replacement is to be made."""
    defined = functions(tokens)
    if not replacement.function:
        return file_scope(defined, len(tokens))
    ranges = [(f.first, f.last) for f in defined if f.name == replacement.function]
    if not ranges:
        raise Wrong(f"there is no function {replacement.function}()")
    if len(ranges) > 1:
        raise Wrong(f"the function {replacement.function}() is defined {len(ranges)} times")
    return ranges


def locate(replacement, source, tokens):
    """Returns start and end of the text to be replaced, which must occur once, and the new text."""
    old, found = words(replacement.old), []
    text = [token.text for token in tokens]
    for first, last in scope_of(replacement, tokens):
        found += [i for i in range(first, last - len(old) + 1) if text[i : i + len(old)] == old]
    shown = " ".join(replacement.old.split())
    if not found:
        raise Wrong(f"not found: {shown}")
    if len(found) > 1:
        lines = ", ".join(str(source.count("\n", 0, tokens[i].start) + 1) for i in found)
        raise Wrong(f"found {len(found)} times (lines {lines}): {shown}")
    first, last = tokens[found[0]], tokens[found[0] + len(old) - 1]
    # A directive is one line.
    new = " ".join(replacement.new.split()) if first.directive else replacement.new.strip()
    return first.start, last.end, new


class Mutant:
    """A file of fields and replacements."""

    def __init__(self, path):
        self.path = path
        self.fields = {}
        self.replacements = []
        with open(path, encoding="utf-8") as file:
            self._parse(file.read().splitlines())

    def _parse(self, lines):
        place = None
        old, new = [], []

        def end(line):
            """Ends the replacement whose last line was the one before."""
            if old:
                start = line - len(old) - len(new)
                self._add(Replacement(start, *place, "\n".join(old), "\n".join(new)))
                old.clear()
                new.clear()

        for number, line in enumerate(lines, 1):
            field = re.fullmatch(r"(\w+): +(.*\S)", line)
            where = re.fullmatch(r"in (\S+) (?:(\w+)\(\)|file scope)", line)
            if line.startswith("-"):
                if not place:
                    raise Wrong(self._at(number, "no line \"in FILE FUNCTION()\" precedes it"))
                if new:
                    end(number)
                old.append(line[1:])
            elif line.startswith("+"):
                if not old:
                    raise Wrong(self._at(number, "no line with \"-\" precedes it"))
                new.append(line[1:])
            elif not line.strip() or line.startswith("#"):
                end(number)
            elif where:
                end(number)
                place = where.groups()
            elif field and not place and field[1] in FIELDS and field[1] not in self.fields:
                self.fields[field[1]] = field[2]
            else:
                raise Wrong(self._at(number, f"not understood: {line}"))
        end(len(lines) + 1)
        if "bug" not in self.fields:
            raise Wrong(self._at(1, "no line \"bug: ...\" says what is wrong with this mutant"))
        if not self.replacements:
            raise Wrong(self._at(len(lines), "no replacement follows"))

    def _add(self, replacement):
        if not words(replacement.old):
            raise Wrong(self._at(replacement.line, "there is no text to be replaced"))
        if words(replacement.old) == words(replacement.new):
            raise Wrong(self._at(replacement.line, "the replacement is what it replaces"))
        self.replacements.append(replacement)

    def _at(self, line, text):
        return f"{self.path}:{line}: {text}"

    def _mutate_file(self, file, sources):
        """Returns the file's text with all replacements, which are found in the text as it was."""
        try:
            with open(os.path.join(sources, file), encoding="utf-8") as stream:
                source = stream.read()
        except OSError as error:
            line = next(r.line for r in self.replacements if r.file == file)
            raise Wrong(self._at(line, f"{file}: {error.strerror}")) from error
        tokens, places = tokenize(source), []
        for replacement in self.replacements:
            if replacement.file != file:
                continue
            try:
                places.append((*locate(replacement, source, tokens), replacement.line))
            except Wrong as wrong:
                where = f"{replacement.function}()" if replacement.function else "file scope"
                raise Wrong(self._at(replacement.line, f"{file}, {where}: {wrong}")) from wrong
        places.sort()
        for (_, last, _, line), (start, _, _, next_line) in zip(places, places[1:]):
            if start < last:
                raise Wrong(self._at(next_line, f"{file}: overlaps the replacement of line {line}"))
        for start, last, new, _ in reversed(places):
            source = f"{source[:start]} {new} {source[last:]}"
        return source

    def mutate(self, sources):
        """Returns the changed files' text by their names."""
        files = sorted({replacement.file for replacement in self.replacements})
        return {file: self._mutate_file(file, sources) for file in files}


def apply(sources, path):
    """Changes the files below sources and prints their names."""
    for file, text in Mutant(path).mutate(sources).items():
        with open(os.path.join(sources, file), "w", encoding="utf-8") as stream:
            stream.write(text)
        print(file)


def check(sources, folders):
    """Returns True if all mutants in the folders apply. Prints the others at the end."""
    failed = []
    for path in [os.path.join(folder, name) for folder in folders for name in sorted(os.listdir(folder))]:
        try:
            Mutant(path).mutate(sources)
            print(f"ok {path}")
        except (OSError, Wrong) as wrong:
            failed.append(f"not ok {wrong}")
    print("\n".join(failed), end="\n" if failed else "")
    return not failed


def main(arguments):
    """Returns the exit status."""
    try:
        if len(arguments) == 3 and arguments[0] == "apply":
            apply(*arguments[1:])
            return 0
        if len(arguments) >= 3 and arguments[0] == "check":
            return 0 if check(arguments[1], arguments[2:]) else 1
    except (OSError, Wrong) as wrong:
        print(wrong, file=sys.stderr)
        return 1
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
