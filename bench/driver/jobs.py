# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs and reads what they print."""

import json
import os
import re
import subprocess
import tempfile


class Failed(Exception):
    """A program that didn't do what it should, why, and what it said."""

    def __init__(self, why, said=""):
        super().__init__(why)
        self.said = said


# What timeout(1) returns when it had to end a program, and to kill it.
TIMED_OUT = (124, 137)

# What a program says last is often only that others have said why.
_NOISE = re.compile(
    r"^[-*\s]*$|\*\*\* |ORTE_ERROR_LOG|^It looks like|^likely to abort|^during MPI_INIT|^problems\.|more process(es)? ha(s|ve) sent"
    r"|Set MCA parameter|^A requested component was not found|^means that this|^used on your|^that the component"
    r"|^Open MPI stopped|^Host:|^Framework:|MPIRUN|Primary job|non-zero|^Per user-direction"
)


def _reason(text):
    missing = re.search(r"Framework:\s*(\S+)\s+Component:\s*(\S+)", text)
    if missing:
        return f"component not found: {missing[1]} {missing[2]}"
    lines = [line.strip() for line in text.splitlines() if not _NOISE.search(line)]
    return lines[0] if lines else None


def _reason_alone(command):
    """What one rank has to say: mpirun loses messages that several say at once, and now and then one's too."""
    for _ in range(3):
        alone = subprocess.run(
            ["timeout", "20", *command[:2], "1", *command[3:]], capture_output=True, text=True, check=False
        )
        reason = _reason(alone.stderr + alone.stdout)
        if reason:
            return reason
    return "MPI_Init failed without saying why"


def run(command, timeout, each_line=None):
    """Runs a command, hands each line of its output to a function, and returns its output."""
    lines = []
    # mpirun ends its ranks when it is told to end; killed, it couldn't.
    limited = ["timeout", "--kill-after=10", str(timeout), *command]
    with tempfile.TemporaryFile("w+") as errors:
        with subprocess.Popen(
            limited, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True
        ) as process:
            try:
                for line in process.stdout:
                    lines.append(line)
                    if each_line:
                        each_line(line)
            except BaseException:
                process.terminate()
                raise
        errors.seek(0)
        said = errors.read()
    said += "".join(lines)
    if process.returncode in TIMED_OUT:
        raise Failed(f"not done after {timeout} s; --timeout S allows more", said)
    if process.returncode:
        reason = _reason(said)
        if not reason:
            reason = _reason_alone(command) if command[:2] == ["mpirun", "-n"] else "without a word"
        raise Failed(f"{reason} (status {process.returncode})", said)
    return "".join(lines)


def mpirun(settings, column, program, *arguments, ranks=None, extra=()):
    """The command that runs one of the benchmark programs, or any other that is given by its whole path; `ranks`: other
    than the part's."""
    options = settings.crowded_options if ranks and ranks != settings.ranks else settings.mpirun_options
    if not settings.hostfile:
        extra = (*column.softhca_options, *extra)
    elif column.local:
        extra = settings.one_node
    return [
        *("mpirun", "-n", str(ranks or settings.ranks), *options, *column.options, *extra),
        os.path.join(settings.programs, program + column.suffix),
        *arguments,
    ]


def run_json(command, timeout, each_object=None):
    """Runs a program that prints JSON, one object per line."""
    objects = []

    def take(line):
        try:
            objects.append(json.loads(line))
        except json.JSONDecodeError:
            return
        if each_object:
            each_object(objects[-1])

    said = run(command, timeout, take)
    if not objects:
        raise Failed("it printed no result", said)
    return objects
