#!/usr/bin/env python3
"""`ration top`: what it shows on a terminal, its keys, that it always restores the terminal, and its JSON stream."""
import fcntl
import json
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import termios

from members import FIRST, RATION, Member, environment
from harness import GIB, HANG, Failure, expect, expect_that, main

FOOTER = b"q quit"
LEAVES_FULL_SCREEN = b"\x1b[?1049l"
SHOWS_CURSOR = b"\x1b[?25h"


class Terminal:
    """`ration top` in a terminal of its own; its output is collected in `shown`."""

    def __init__(self, state, *arguments, lines=24, columns=80, **settings):
        self.shown = b""
        self.ours, self.theirs = pty.openpty()
        self.resize(lines, columns)
        self.before = termios.tcgetattr(self.theirs)
        self.process = subprocess.Popen([RATION, "top", *arguments], env=environment(state) | settings, stdin=self.theirs,
                                        stdout=self.theirs, stderr=subprocess.PIPE, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        os.close(self.ours)
        os.close(self.theirs)

    def resize(self, lines, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, timeout):
        if not select.select([self.ours], [], [], timeout)[0]:
            return b""
        some = os.read(self.ours, 65536)
        self.shown += some
        return some

    def await_text(self, text):
        """Waits until `text` is shown after all text that was awaited before."""
        while text not in self.shown:
            if not self.read(HANG):
                raise Failure(f"{text!r} is not shown; so far: {self.shown!r}")
        self.shown = self.shown[self.shown.index(text) + len(text):]

    def type(self, keys):
        os.write(self.ours, keys)

    def expect_end(self, status):
        while self.process.poll() is None:
            self.read(0.02)
        while self.read(0):
            pass
        expect("stderr", self.process.stderr.read(), b"")
        expect("status", self.process.returncode, status)
        expect("the terminal's modes", termios.tcgetattr(self.theirs), self.before)
        expect_that(f"the screen is not restored: {self.shown!r}",
                    LEAVES_FULL_SCREEN in self.shown and SHOWS_CURSOR in self.shown)


def member(folder):
    return Member(pathlib.Path(folder) / "state", "0", f"{FIRST}={GIB}", "named=nightly")


def quits(folder):
    with Terminal(folder) as terminal:
        terminal.await_text(FOOTER)
        terminal.type(b"q")
        terminal.expect_end(0)


def ended_by(number):
    def case(folder):
        with Terminal(folder) as terminal:
            terminal.await_text(FOOTER)
            terminal.process.send_signal(number)
            terminal.expect_end(-number)
    return case


def interrupted(folder):
    """By the interrupt key, not by a signal of another process."""
    with Terminal(folder) as terminal:
        terminal.await_text(FOOTER)
        terminal.type(b"\x03")
        terminal.expect_end(-signal.SIGINT)


def processes_and_keys(folder):
    """A process appears and disappears without a key press, within an interval; the keys work."""
    state = pathlib.Path(folder) / "state"
    with Terminal(state, "--interval", "0.1") as terminal:
        terminal.await_text(b"0 processes on 0 GPUs, by reserved")
        with member(folder):
            terminal.await_text(b"member")
            terminal.await_text(b"1.00GiB")
            terminal.type(b"p")
            terminal.await_text(b"pid")
            terminal.type(b" ")
            terminal.await_text(b"paused")
            terminal.type(b" ")
        terminal.await_text(b"no process has requested")
        terminal.type(b"q")
        terminal.expect_end(0)


def any_size(folder):
    """Any terminal size, also after a resize."""
    with member(folder), Terminal(pathlib.Path(folder) / "state", "--interval", "0.1", lines=1, columns=1) as terminal:
        terminal.await_text(b"r")
        for lines, columns in ((2, 3), (24, 80), (1, 1), (5, 200), (200, 5), (24, 80)):
            terminal.resize(lines, columns)
        terminal.await_text(FOOTER)
        terminal.type(b"q")
        terminal.expect_end(0)


def unknown_terminal(folder):
    for kind in ("no-such-terminal", "dumb", ""):
        with member(folder), Terminal(pathlib.Path(folder) / "state", TERM=kind) as terminal:
            terminal.await_text(b"PROCESSES")
            expect("status", terminal.process.wait(HANG), 0)
            expect("the terminal's modes", termios.tcgetattr(terminal.theirs), terminal.before)
            expect("lines on stderr", len(terminal.process.stderr.read().splitlines()), 1)


def closed_terminal(folder):
    """The terminal is closed: `ration top` ends."""
    terminal = Terminal(folder)
    terminal.await_text(FOOTER)
    os.close(terminal.theirs)
    os.close(terminal.ours)
    expect_that("it ends", terminal.process.wait(HANG) in (0, -signal.SIGHUP))
    terminal.process.stderr.close()


def stream(folder):
    """A line for each interval, flushed at once; no message when the reader closes the pipe."""
    with member(folder) as process:
        top = subprocess.Popen([RATION, "top", "--json", "--interval", "0.1"], env=environment(pathlib.Path(folder) / "state"),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        seen = [json.loads(top.stdout.readline()) for _ in range(3)]
        top.stdout.close()
        expect("status", top.wait(HANG), 0)
        expect("stderr", top.stderr.read(), b"")
        top.stderr.close()
    for each in seen:
        expect("line", (each["schema"], [row["pid"] for row in each["processes"]]), ("ration.ps/1", [process.pid]))
    expect_that("increasing times", seen[0]["unix_ns"] < seen[1]["unix_ns"] < seen[2]["unix_ns"])


main({"q": quits, "SIGTERM": ended_by(signal.SIGTERM), "SIGHUP": ended_by(signal.SIGHUP), "the interrupt key": interrupted,
      "processes and keys": processes_and_keys, "any size": any_size, "an unknown terminal": unknown_terminal, "a closed terminal": closed_terminal,
      "stream": stream})
