# SPDX-License-Identifier: BSD-3-Clause
"""Takes all columns in turn, round by round, with a progress line."""

import sys
import time

from jobs import Failed


class Progress:
    """One line that is rewritten on a terminal, and a line per step elsewhere."""

    def __init__(self, steps):
        self.steps, self.done, self.started = steps, 0, time.monotonic()
        self.live = sys.stderr.isatty()

    def show(self, text):
        """Says what is being done."""
        if self.live:
            print(f"\r\033[K{self._head()} {text}", end="", file=sys.stderr, flush=True)

    def step(self, text):
        """Another step is done."""
        self.done += 1
        if not self.live:
            print(f"{self._head()} {text}", file=sys.stderr, flush=True)

    def say(self, text):
        """A line that stays."""
        print(f"\r\033[K{text}" if self.live else text, file=sys.stderr, flush=True)

    def end(self):
        """Leaves a clean line."""
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def _head(self):
        passed = time.monotonic() - self.started
        left = f", {passed / self.done * (self.steps - self.done):.0f} s left" if self.done else ""
        return f"[{self.done}/{self.steps}{left}]"


class Task:
    """Something to be run once per round: fn(show) returns its results or raises Failed."""

    def __init__(self, name, fn, own=False):
        self.name, self.fn, self.own = name, fn, own
        self.results = []  # one per round
        self.skipped = None  # why it couldn't be run
        self.said = None  # and what the program said then, if one ran

    def run(self, number, progress):
        """Runs it in a round. A task that failed isn't tried again, and has no result."""
        if self.skipped:
            return
        try:
            self.results.append(self.fn(lambda text: progress.show(f"round {number}, {self.name}: {text}")))
        except Failed as failure:
            self.skipped, self.said = str(failure), failure.said
            self.results = []
            progress.say(f"{self.name} left out: {self.skipped}")


def take_turns(tasks, rounds):
    """Each round runs every task once, beginning with another one each time."""
    progress = Progress(rounds * len(tasks))
    for number in range(rounds):
        first = number % len(tasks)
        for task in tasks[first:] + tasks[:first]:
            progress.show(f"round {number + 1}, {task.name}")
            task.run(number + 1, progress)
            progress.step(f"round {number + 1} of {rounds}: {task.name}")
    progress.end()
