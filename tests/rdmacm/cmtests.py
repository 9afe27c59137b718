#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the tests of rdma_cm that come with pyverbs, with the names of those to run as arguments.

pyverbs asks ip(8), and so the kernel, for the address of an adapter's interface. The kernel doesn't know that interface, so this program says the address.
"""
import gzip
import pathlib
import sys
import tempfile
import unittest

SOURCES = pathlib.Path("/usr/share/doc/rdma-core/tests")
ADDRESS = "10.77.0.1"


def unpack(folder):
    """Copies pyverbs' tests, which Debian packs one by one."""
    package = pathlib.Path(folder, "tests")
    package.mkdir()
    for source in SOURCES.glob("*.py*"):
        text = source.read_bytes() if source.suffix == ".py" else gzip.decompress(source.read_bytes())
        name = source.name.removesuffix(".gz")
        # The package imports its parser by a name of its own.
        (package.parent if name == "args_parser.py" else package).joinpath(name).write_bytes(text)
    (package / "__init__.py").write_text("")
    sys.path.insert(0, folder)


class Results(unittest.TextTestResult):
    """Prints each result as a line of its own."""

    def addSuccess(self, test):
        super().addSuccess(test)
        print("ok", test.id(), flush=True)

    def addError(self, test, error):
        super().addError(test, error)
        print("not ok", test.id(), flush=True)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        print("not ok", test.id(), flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print("ok", test.id(), "# SKIP", reason, flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        unpack(folder)
        names, sys.argv[1:] = sys.argv[1:], []
        from args_parser import parser

        parser.parse_args()
        from tests import base, test_rdmacm

        def note(case, device, port, index):
            case.args.append([device, port, index, ADDRESS, None])

        base.RDMATestCase._get_ip_mac = note
        loader = unittest.defaultTestLoader
        if names:
            suite = unittest.TestSuite(loader.loadTestsFromName(f"CMTestCase.{name}", test_rdmacm) for name in names)
        else:
            suite = loader.loadTestsFromTestCase(test_rdmacm.CMTestCase)
        result = unittest.TextTestRunner(verbosity=2, resultclass=Results).run(suite)
        return not result.wasSuccessful() or not result.testsRun


if __name__ == "__main__":
    sys.exit(main())
