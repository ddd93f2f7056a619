#!/usr/bin/env python3
"""Records new golden traces from the demonstration: tests/golden/record.py DIRECTORY PROGRAM [demo option ...]

Runs PROGRAM (ffclock-lab, with ffclockd beside it) as `demo`, and leaves kernel.fftrace.gz and user.fftrace.gz in
DIRECTORY. With the embedded server the truth is a function of the counter, whose parameters stand in the command line
of the server: each reply then gets its true time, worked out here in exact fractions. docs/trace.md describes the
format, and is all that this program knows of it.
"""

import gzip
import math
import os
import struct
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

MAGIC = b"ffclock trace 1\n"
PLAIN, WITH_TRUTH = 112, 144
EXCHANGE = 1
TRUE_RECEIVED = 1
UNITS = 1 << 64
MASK = UNITS - 1


def check(data: bytes) -> int:
    """The hash over all bytes before the last eight of a record, or over the text of the header."""
    value = 0x6666636C6F636B31
    for (word,) in struct.iter_unpack("<Q", data):
        value = ((value << 29 | value >> 35) & MASK ^ word) * 0x9E3779B97F4A7C15 & MASK
    return value


class Truth:
    """TAI [2^-64 s] as a function of the counter, as `ffclock-lab lab server` defines it."""

    def __init__(self, arguments: dict[str, str]) -> None:
        self.origin = int(arguments["--origin-counter"])
        self.time = int(arguments["--origin-tai"])
        mantissa, shift = int(arguments["--period-mantissa"]), int(arguments["--period-shift"])
        self.period = Fraction(mantissa, 1 << shift)  # [2^-64 s] a tick
        self.wander = quantity(arguments["--wander"])
        self.swing = quantity(arguments["--swing"])

    def at(self, counter: int) -> int:
        steady = self.period * (counter - self.origin)
        phase = math.tau * float(steady / UNITS) / self.swing
        wandered = self.wander * self.swing / math.tau * (1 - math.cos(phase))
        return self.time + int(steady) + int(wandered * UNITS)


def quantity(text: str) -> float:
    """A rate or a span as ffclock writes it."""
    number, unit = text.split()
    return float(number) * {"ppm": 1e-6, "ppb": 1e-9, "s": 1.0, "ms": 1e-3, "min": 60.0}[unit]


def with_truth(trace: bytes, truth: Truth) -> bytes:
    """The same trace with the true time of each reply."""
    assert trace.startswith(MAGIC)
    size, length, _ = struct.unpack_from("<IIQ", trace, 16)
    assert size == PLAIN
    lines = [line for line in trace[32 : 32 + length].decode().split("\n") if line and not line.startswith("truth=")]
    text = "\n".join([*lines, "truth=yes", ""]).encode()
    text += b"\n" * (-len(text) % 8)
    out = bytearray(MAGIC + struct.pack("<IIQ", WITH_TRUTH, len(text), check(text)) + text)
    for place in range(32 + length, len(trace) - PLAIN + 1, PLAIN):
        record = bytearray(trace[place : place + PLAIN - 8])
        assert check(record) == struct.unpack_from("<Q", trace, place + PLAIN - 8)[0]
        received = 0
        if record[0] == EXCHANGE:
            record[1] |= TRUE_RECEIVED
            received = truth.at(struct.unpack_from("<Q", record, 32)[0])
        record += bytes(16) + received.to_bytes(16, "little", signed=True)
        out += record + struct.pack("<Q", check(record))
    return bytes(out)


def command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def server_arguments(parent: int) -> dict[str, str] | None:
    """The arguments of the embedded server that runs below `parent`; None where another server does."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        words = command_line(int(entry.parent.name))
        if int(fields[1]) == parent and words[1:3] == ["lab", "server"]:
            return dict(zip(words[3::2], words[4::2]))
    return None


def main() -> None:
    directory, program, *options = sys.argv[1:]
    place = Path(directory)
    place.mkdir(parents=True, exist_ok=True)
    demo = subprocess.Popen([program, "demo", "--output", str(place / "demo"), *options])
    truth = None
    while demo.poll() is None:
        if truth is None and (arguments := server_arguments(demo.pid)):
            truth = Truth(arguments)
        time.sleep(0.1)
    if demo.returncode != 0:
        sys.exit(f"the demonstration failed with exit code {demo.returncode}")
    for stamps in ["kernel", "user"]:
        (recorded,) = (place / "demo" / f"{stamps}.recorded").iterdir()
        trace = recorded.read_bytes()
        if truth is not None:
            trace = with_truth(trace, truth)
        packed = place / f"{stamps}.fftrace.gz"
        packed.write_bytes(gzip.compress(trace, mtime=0))
        print(f"{packed}: {os.path.getsize(packed)} bytes")


main()
