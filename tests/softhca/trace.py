#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""trace.py FILE [CHECK...] - checks a trace of softhca run --trace. Without CHECK only its form: events belong to
named processes, spans end after they begin, a thread does one thing at a time. CHECK is NAME=N (at least N events of
that name), "lost=SRQ" (messages name that shared receive queue, and go to no process), or "same=OTHER": OTHER has the
same events, but for numbers that differ from run to run.
"""
import json
import sys
from collections import Counter, defaultdict


def fail(text):
    sys.exit("trace.py: " + text)


def check_form(events):
    named = {e["pid"] for e in events if e["name"] == "process_name"}
    begun, stretches = {}, defaultdict(list)
    for e in events:
        if e["pid"] not in named:
            fail(f"process {e['pid']} has no name")
        if e["ts"] < 0 or e.get("dur", 0) < 0:
            fail(f"a negative time: {e}")
        span = (e["pid"], e.get("cat"), e.get("id"))
        if e["ph"] == "b":
            if span in begun:
                fail(f"{span} begins twice")
            begun[span] = e
        elif e["ph"] == "e":
            if span not in begun:
                fail(f"{span} ends and never began")
            if e["ts"] < begun.pop(span)["ts"]:
                fail(f"{span} ends before it begins")
        elif e["ph"] == "X":
            stretches[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
    if begun:
        fail(f"{len(begun)} spans never end")
    for thread, times in stretches.items():
        times.sort()
        for before, after in zip(times, times[1:]):
            # Times are in us with three digits: a sum of two may be off by the last one.
            if before[1] > after[0] + 0.0015:
                fail(f"thread {thread} does two things at {after[0]}")


def check_messages(events):
    """Each span of an arrival is also one of a message, with the same id, beginning and end."""
    def spans(name):
        at = Counter()
        for e in events:
            if e["name"] == name and e["ph"] in "be":
                at[e["ph"], e["id"], e["ts"]] += 1
        return at

    arriving = spans("arriving")
    if arriving - spans("message"):
        fail("something arrives that is no message")


def check_lost(events, srq):
    goals = {e["args"]["to"] for e in events if e["name"] == "message" and e["ph"] == "b" and e["args"]["srq"] == srq}
    if goals != {0}:
        fail(f"messages to queue {srq} go to {goals}, not to 0")


def comparable(events):
    """Yields each event as text, without the numbers that differ from run to run: of threads, spans and queues."""
    for e in events:
        if e["ph"] == "M":
            continue
        args = {k: v for k, v in e.get("args", {}).items() if k in ("bytes", "status", "operation", "from", "to")}
        yield json.dumps([e["ph"], e["pid"], e["ts"], e.get("dur"), e["name"], args], sort_keys=True)


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)["traceEvents"]


def main(path, *checks):
    events = load(path)
    check_form(events)
    check_messages(events)
    names = Counter(e["name"] for e in events if e["ph"] != "e")
    for check in checks:
        name, _, value = check.partition("=")
        if name == "same":
            if Counter(comparable(events)) != Counter(comparable(load(value))):
                fail(f"{path} and {value} differ")
        elif name == "lost":
            check_lost(events, int(value, 0))
        elif names[name] < int(value):
            fail(f"{names[name]} events \"{name}\", not {value}; there are {dict(names)}")


main(*sys.argv[1:])
