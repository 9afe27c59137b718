# SPDX-License-Identifier: BSD-3-Clause
"""Runs all columns in turn, round by round, with a progress line."""

import sys
import time

import jobs
from jobs import Failed


class Progress:
    """A progress line: rewritten on a terminal, a new line per step elsewhere."""

    def __init__(self, steps):
        self.steps, self.done, self.started = steps, 0, time.monotonic()
        self.live = sys.stderr.isatty()

    def show(self, text):
        """Shows the current operation."""
        if self.live:
            print(f"\r\033[K{self._head()} {text}", end="", file=sys.stderr, flush=True)

    def step(self, text):
        """Counts a step."""
        self.done += 1
        if not self.live:
            print(f"{self._head()} {text}", file=sys.stderr, flush=True)

    def say(self, text):
        """Prints a line that stays."""
        print(f"\r\033[K{text}" if self.live else text, file=sys.stderr, flush=True)

    def end(self):
        """Clears the line."""
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def _head(self):
        passed = time.monotonic() - self.started
        left = f", {passed / self.done * (self.steps - self.done):.0f} s left" if self.done else ""
        return f"[{self.done}/{self.steps}{left}]"


class Task:
    """A column that runs once per round: function(show) returns its results or raises Failed."""

    def __init__(self, name, function, own=False):
        self.name, self.function, self.own = name, function, own
        self.results = []  # one per round
        self.skipped = None  # the reason why it didn't run
        self.lost = {}  # cases of a figure of bench/paper that failed, and why
        self.output = None  # the output of the program that failed

    def run(self, number, progress):
        """Runs the column in a round. A task that failed isn't tried again, and has no result."""
        if self.skipped:
            return
        try:
            self.results.append(self.function(lambda text: progress.show(f"round {number}, {self.name}: {text}")))
        except Failed as failure:
            self.skipped, self.output = str(failure), failure.output
            self.results = []
            progress.say(f"{self.name} left out: {self.skipped}")


def program_task(settings, column, program, arguments, text):
    """Returns a task that runs a program. Its results are what the program prints; text(result) is shown."""

    def run(show):
        command = jobs.mpirun(settings, column, program, *arguments)
        return jobs.run_json(command, settings.timeout, lambda result: show(text(result)))

    return Task(column.name, run, column.own)


def take_turns(tasks, rounds):
    """Runs every task once per round. Each round begins with another task than the last."""
    if not tasks:
        return
    progress = Progress(rounds * len(tasks))
    for number in range(rounds):
        first = number % len(tasks)
        for task in tasks[first:] + tasks[:first]:
            progress.show(f"round {number + 1}, {task.name}")
            task.run(number + 1, progress)
            progress.step(f"round {number + 1} of {rounds}: {task.name}")
    progress.end()
