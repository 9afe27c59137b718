# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs and reads their output."""

import functools
import json
import os
import re
import subprocess
import tempfile
import time

import virtual


class Failed(Exception):
    """The failure of a program: the reason, and its output."""

    def __init__(self, why, output=""):
        super().__init__(why)
        self.output = output


# The status of timeout(1) when it ended a program, and when it killed it. Programs may end with these, too.
TIMED_OUT = (124, 137)

# The status of a program that SIGKILL ended, and of a shell or mpirun that saw this.
KILLED = (-9, 137)

# Lines that give no reason: results, which are JSON objects, and last lines that only say that others have failed.
_NOISE = re.compile(
    r"^\{|^[-*\s]*$|\*\*\* |ORTE_ERROR_LOG|^It looks like|^likely to abort|^during MPI_INIT|^problems\.|more process(es)? ha(s|ve) sent"
    r"|Set MCA parameter|^A requested component was not found|^means that this|^used on your|^that the component"
    r"|^Open MPI stopped|^Host:|^Framework:|MPIRUN|Primary job|non-zero|^Per user-direction"
    r"|MPI_ABORT|^with errorcode|^You may or may not see|^exactly when Open MPI"
    r"|^=|^YOUR APPLICATION TERMINATED|^This typically refers|^Please see the FAQ"
)


def _reason(text):
    """Returns the first line that gives a reason, or None."""
    missing = re.search(r"Framework:\s*(\S+)\s+Component:\s*(\S+)", text)
    if missing:
        return f"component not found: {missing[1]} {missing[2]}"
    lines = [line.strip() for line in text.splitlines() if not _NOISE.search(line)]
    return lines[0] if lines else None


def _reason_alone(command):
    """Returns the reason of one rank alone, because mpirun loses messages, above all those of several ranks at once."""
    for _ in range(3):
        alone = subprocess.run(
            ["timeout", "20", *command[:2], "1", *command[3:]],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        if alone.returncode == 0:
            return "no message, and one rank alone succeeds"
        reason = _reason(alone.stderr + alone.stdout)
        if reason:
            return reason
    return "no message"


def _why_failed(command, timeout, status, took, output):
    """Returns why a command failed, which ran for `took` seconds."""
    if status in TIMED_OUT and took >= float(timeout):
        return f"not done after {timeout} s; --timeout S allows more"
    reason = _reason(output)
    if status in KILLED and not reason:
        reason = "killed by SIGKILL, perhaps for want of memory: see dmesg"
    if not reason:
        reason = _reason_alone(command) if command[1:2] == ["-n"] else "no message"
        # Open MPI takes a signal for its user's, who needs no message.
        if status == 1 and "mpirun" in command:
            reason += ", as if a signal had ended mpirun"
    return f"{reason} (status {status})"


def run(command, timeout, each_line=None, each_message=None):
    """Runs a command, hands each line of its output to a function, and returns its output. `each_message` gets the lines of the
    standard error output, when the command has ended."""
    lines = []
    began = time.monotonic()
    # A signal lets mpirun end its ranks; SIGKILL wouldn't.
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
        messages = errors.read()
    output = messages + "".join(lines)
    if process.returncode:
        took = time.monotonic() - began
        raise Failed(_why_failed(command, timeout, process.returncode, took, output), output)
    for line in messages.splitlines() if each_message else ():
        each_message(line)
    return "".join(lines)


@functools.cache
def _sees_writes():
    """Returns true if the fabric's virtual time knows of writes to shared memory."""
    return bool(json.loads(run(["softhca", "stat", "--json"], 20))["clock"][0]["sees_writes"])


def check_shared_memory(settings, waits):
    """Raises Failed if ranks wait in shared memory, in virtual time that knows nothing of writes there."""
    if settings.virtual and waits and not _sees_writes():
        raise Failed(virtual.NOT_MODELLED)


def mpirun(settings, column, program, *arguments, ranks=None, extra=()):
    """Returns the command that runs a benchmark program, or any program that is given by its whole path. `ranks`: the
    number of ranks, if it isn't the part's. Raises Failed if the column can't run."""
    if settings.virtual and column.real:
        raise Failed(f"{column.name} has no figures in virtual time")
    check_shared_memory(settings, column.local)
    options = settings.crowded_options if ranks and ranks != settings.ranks else settings.mpirun_options
    if (settings.within or column.local) and settings.one_node[1] not in extra:
        extra = (*settings.one_node, *extra)
    # In virtual time a rank that waits without a call keeps others from running.
    if settings.virtual and column.local and "mpi_yield_when_idle" not in options:
        extra = ("--mca", "mpi_yield_when_idle", "1", *extra)
    if not settings.hostfile:
        extra = (*column.softhca_options, *extra)
    return [
        *(settings.mpirun or "mpirun", "-n", str(ranks or settings.ranks), *options, *column.options, *extra),
        os.path.join(settings.programs, program + column.suffix),
        *arguments,
    ]


def run_json(command, timeout, each_object=None, each_message=None):
    """Runs a program that prints JSON, one object per line. Returns the objects. `each_message`: as of run()."""
    objects, broken, messages = [], [], []

    def take(line):
        try:
            objects.append(json.loads(line))
        except json.JSONDecodeError:
            if '{"' in line:
                broken.append(line)
            return
        if each_object:
            each_object(objects[-1])

    def hear(line):
        messages.append(line)
        if each_message:
            each_message(line)

    output = run(command, timeout, take, hear)
    said = "\n".join([*messages, output])
    if broken:
        raise Failed(f"a result of the program is no JSON: {broken[0].strip()[:200]}", said)
    if not objects:
        raise Failed(f"the program ended with status 0 and printed {'no result' if said.strip() else 'nothing'}", said)
    return objects
