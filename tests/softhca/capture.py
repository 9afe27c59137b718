#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""capture.py CAPTURE [TRACE] [CHECK...] - checks a capture of softhca run --pcap, as tshark reads it: no packet is malformed, times
don't fall, PSNs follow each other, lengths of headers and CRCs are right. With the TRACE of the same run (--trace, JSON) the
messages are those that were posted: operation, bytes, SRQ number, in the order of each QP. CHECK is NAME=N: at least N of
that (packets, rnr, nak, ack, retries, interfaces, v1, v2, grh, imm, inv), or "timer=N" (all RNR NAKs have that code), "mtu=N" (the
longest payload), or "same=OTHER": OTHER has the same packets at the same times.
"""
import json
import struct
import subprocess
import sys
import zlib
from collections import Counter, defaultdict

TRANSPORTS = {0x00: "RC", 0x20: "UC", 0x60: "UD", 0xA0: "XRC"}
# By opcode: the operation, whether the packet is the first and the last of its message, and the bytes of its extended headers.
REQUESTS = {0x00: ("send", 1, 0, 0), 0x01: ("send", 0, 0, 0), 0x02: ("send", 0, 1, 0), 0x03: ("send with immediate", 0, 1, 4),
            0x04: ("send", 1, 1, 0), 0x05: ("send with immediate", 1, 1, 4), 0x06: ("write", 1, 0, 16), 0x07: ("write", 0, 0, 0),
            0x08: ("write", 0, 1, 0), 0x09: ("write with immediate", 0, 1, 4), 0x0A: ("write", 1, 1, 16),
            0x0B: ("write with immediate", 1, 1, 20), 0x0C: ("read", 1, 1, 16), 0x13: ("compare and swap", 1, 1, 28),
            0x14: ("fetch and add", 1, 1, 28), 0x16: ("send with invalidation", 0, 1, 4),
            0x17: ("send with invalidation", 1, 1, 4)}
RESPONSES = {0x0D: 4, 0x0E: 0, 0x0F: 4, 0x10: 4, 0x11: 4, 0x12: 12}
FIELDS = ["frame.time_epoch", "frame.interface_name", "frame.len", "infiniband.lrh.lnh", "infiniband.lrh.pktlen", "eth.type",
          "ip.version", "infiniband.bth.opcode", "infiniband.bth.padcnt", "infiniband.bth.destqp", "infiniband.bth.a",
          "infiniband.bth.psn", "infiniband.deth.srcqp", "infiniband.reth.dmalen", "infiniband.aeth.syndrome.opcode",
          "infiniband.aeth.syndrome.timer", "infiniband.vendor", "ip.checksum.status", "udp.length", "_ws.malformed"]


def fail(text):
    sys.exit("capture.py: " + text)


def number(text):
    return int(text, 0) if text else None


def crc16(data):
    """The VCRC: x^16 + x^12 + x^3 + x + 1, bit by bit."""
    crc = 0xFFFF
    for byte in data:
        for bit in range(8):
            crc = crc >> 1 ^ (0xD008 if (crc ^ byte >> bit) & 1 else 0)
    return crc ^ 0xFFFF


def icrc(headers, rest):
    return zlib.crc32(bytes(headers) + rest)


def masked(frame, front, ip, udp):
    """The bytes of the ICRC: the fields that change on the way are ones. Returns them up to the BTH, and what follows."""
    lrh = bytearray(b"\xff" * 8)
    if front == 8:
        lrh[:] = frame[:8]
        lrh[0] |= 0xF0
    at = front + ip + udp + 12
    headers = bytearray(frame[front:at])
    if ip == 20:
        headers[1] = headers[8] = headers[10] = headers[11] = 0xFF
    elif ip:
        headers[0] |= 0x0F
        headers[1:4] = b"\xff\xff\xff"
        headers[7] = 0xFF
    if udp:
        headers[ip + 6:ip + 8] = b"\xff\xff"
    headers[ip + udp + 4] = 0xFF
    return lrh + headers, frame[at:]


def check_vector():
    """A packet that a ConnectX-4 sent (a CNP, from the tests of Scapy) has the ICRC that is computed here."""
    frame = bytes.fromhex("e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b700280000"
                          "8100ffff4000011800000000" + "00" * 16 + "82fd002a")
    if struct.pack("<I", icrc(*masked(frame[:-4], 14, 20, 8))) != frame[-4:]:
        fail("the ICRC of a known packet is wrong")


def frames(path):
    """Yields the packets of a capture, without the ERF headers of InfiniBand, and the types of their links."""
    data = open(path, "rb").read()
    at, links = 0, []
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 1:
            links.append(struct.unpack_from("<H", data, at + 8)[0])
        elif kind == 6:
            interface, _, _, captured = struct.unpack_from("<IIII", data, at + 8)
            erf = 16 if links[interface] == 197 else 0
            yield links[interface], data[at + 28 + erf:at + 28 + captured]
        at += length


class Packet:
    def __init__(self, line, link, frame):
        f = dict(zip(FIELDS, line.split("\t")))
        self.text, self.link, self.frame = line, link, frame
        self.time, self.interface = f["frame.time_epoch"], f["frame.interface_name"]
        self.front = 14 if link == 1 else 8
        self.udp = 8 if f["udp.length"] else 0
        self.ip = 20 if f["ip.version"] == "4" else 40 if link == 1 or number(f["infiniband.lrh.lnh"]) == 3 else 0
        opcode = number(f["infiniband.bth.opcode"])
        self.transport, self.opcode = TRANSPORTS.get(opcode & 0xE0), opcode & 0x1F
        self.psn, self.qpn = number(f["infiniband.bth.psn"]), number(f["infiniband.bth.destqp"])
        self.source, self.dmalen = number(f["infiniband.deth.srcqp"]), number(f["infiniband.reth.dmalen"])
        self.answer, self.timer = number(f["infiniband.aeth.syndrome.opcode"]), f["infiniband.aeth.syndrome.timer"]
        self.is_request = self.opcode in REQUESTS
        if not self.is_request and self.opcode not in RESPONSES:
            fail(f"opcode {opcode:#x}")
        if f["_ws.malformed"] or f["ip.checksum.status"] not in ("", "1", "2"):
            fail(f"malformed: {line}")
        if link != 1 and number(f["infiniband.lrh.pktlen"]) * 4 + 2 != len(frame):
            fail(f"a wrong length: {line}")
        extended = REQUESTS[self.opcode][3] if self.is_request else RESPONSES[self.opcode]
        extended += {"UD": 8, "XRC": 4 if self.is_request else 0}.get(self.transport, 0)
        padding = number(f["infiniband.bth.padcnt"])
        crcs = 4 if link == 1 else 6
        self.payload = len(frame) - self.front - self.ip - self.udp - 12 - extended - padding - crcs
        self.srqn = None
        if self.transport == "XRC":
            # tshark knows the opcodes of XRC, and shows what follows the BTH as it is.
            rest = bytes.fromhex(f["infiniband.vendor"].split(",")[-1])
            head = struct.unpack_from(">I", rest)[0]
            if self.is_request:
                self.srqn = head & 0xFFFFFF
                if REQUESTS[self.opcode][0].startswith(("write", "read")) and REQUESTS[self.opcode][1]:
                    self.dmalen = struct.unpack_from(">I", rest, 16)[0]
            elif self.opcode != 0x0E:
                self.answer, self.timer = head >> 29, str(head >> 24 & 0x1F)

    def check_crcs(self):
        end = len(self.frame) - (4 if self.link == 1 else 6)
        sent = self.frame[end:end + 4]
        if struct.pack("<I", icrc(*masked(self.frame[:end], self.front, self.ip, self.udp))) != sent:
            fail(f"a wrong ICRC: {self.text}")
        if self.link != 1 and struct.pack("<H", crc16(self.frame[:-2])) != self.frame[-2:]:
            fail(f"a wrong VCRC: {self.text}")


def read(path):
    command = ["tshark", "-r", path, "--disable-protocol", "rpcordma", "--disable-protocol", "infiniband.eoib", "-T", "fields"]
    for field in FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        fail("tshark: " + done.stderr)
    lines, raw = done.stdout.splitlines(), list(frames(path))
    if len(lines) != len(raw):
        fail(f"tshark sees {len(lines)} of {len(raw)} packets")
    packets = [Packet(line, *frame) for line, frame in zip(lines, raw)]
    for earlier, later in zip(packets, packets[1:]):
        if float(later.time) < float(earlier.time) and later.time < earlier.time:
            fail(f"out of order: {later.text}")
    return packets


def messages(packets, counts):
    """Returns the messages of each QP. One that is sent again begins with a PSN that was there."""
    flows = defaultdict(dict)
    expected = {}
    for p in packets:
        flow = p.transport, p.qpn if p.source is None else p.source
        if not p.is_request:
            counts["answered"] += p.payload
            continue
        operation, first, last, _ = REQUESTS[p.opcode]
        if first:
            counts["retries"] += p.psn in flows[flow]
            flows[flow][p.psn] = [operation, 0, p.srqn, False, p.dmalen]
            expected[flow] = p.psn, p.psn
        begin, psn = expected[flow]
        if psn != p.psn:
            fail(f"PSN {psn} was expected: {p.text}")
        expected[flow] = begin, (psn + 1) & 0xFFFFFF
        message = flows[flow][begin]
        message[0] = operation
        message[1] += p.payload
        message[3] = bool(last)
    result = {}
    for flow, sent in flows.items():
        result[flow] = []
        for operation, length, srqn, done, dmalen in sent.values():
            if operation == "read":
                length = dmalen
                counts["asked"] += dmalen
            elif operation in ("compare and swap", "fetch and add"):
                length = 8
            elif dmalen is not None and done and dmalen != length:
                fail(f"a write of {dmalen} bytes has {length}")
            result[flow].append((operation, length, srqn or 0))
    return result


def compare(flows, trace, counts):
    if counts["asked"] != counts["answered"]:
        fail(f"reads asked for {counts['asked']} bytes, and got {counts['answered']}")
    posted = defaultdict(list)
    for e in json.load(open(trace, encoding="utf-8"))["traceEvents"]:
        if e["ph"] == "i" and e["name"].startswith("post ") and e["name"] != "post receive":
            # Behind the word of an atomic a list may go on.
            length = 8 if e["name"][5:] in ("compare and swap", "fetch and add") else e["args"]["bytes"]
            posted[e["args"]["qp"]].append((e["name"][5:], length, e["args"]["srq"]))
    for (transport, _), sent in flows.items():
        if transport != "XRC":
            sent[:] = [(operation, length, 0) for operation, length, _ in sent]
    # The trace names senders, and packets their destinations.
    xrc = any(transport == "XRC" for transport, _ in flows)
    wanted = Counter(tuple((o, n, s if xrc else 0) for o, n, s in sent) for sent in posted.values())
    seen = Counter(tuple(sent) for sent in flows.values())
    if wanted != seen:
        fail(f"posted, and not sent: {list((wanted - seen).items())[:3]}\nsent, and not posted: {list((seen - wanted).items())[:3]}")


def main():
    check_vector()
    path, checks = sys.argv[1], sys.argv[2:]
    packets, counts = read(path), Counter()
    if not packets:
        fail("no packets")
    # Some of them, because Python takes its time.
    for p in packets[:2000:1 + len(packets) // 500]:
        p.check_crcs()
    for p in packets:
        counts["packets"] += 1
        counts[{0: "ack", 1: "rnr", 3: "nak"}.get(p.answer, "request")] += 1
        counts["v2" if p.udp else "v1" if p.link == 1 else "grh" if p.ip else "local"] += 1
        counts["imm"] += p.is_request and "immediate" in REQUESTS[p.opcode][0]
        counts["inv"] += p.is_request and "invalidation" in REQUESTS[p.opcode][0]
        counts["interface " + p.interface] += 1
    counts["interfaces"] = len({p.interface for p in packets})
    flows = messages(packets, counts)
    for check in checks:
        name, _, value = check.partition("=")
        if not value:
            compare(flows, name, counts)
        elif name == "timer":
            if {p.timer for p in packets if p.answer == 1} != {value}:
                fail(f"timers {Counter(p.timer for p in packets if p.answer == 1)}")
        elif name == "mtu":
            if max(p.payload for p in packets) != int(value):
                fail(f"a payload of {max(p.payload for p in packets)} bytes")
        elif name == "same":
            if [(p.time, p.opcode, p.payload) for p in packets] != [(p.time, p.opcode, p.payload) for p in read(value)]:
                fail("the captures differ")
        elif counts[name] < int(value):
            fail(f"{counts[name]} of {name}, {value} were expected; {dict(counts)}")


main()
