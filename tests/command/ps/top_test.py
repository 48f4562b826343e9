#!/usr/bin/env python3
"""`ration top`: what it shows on a terminal, its keys, and that it always restores the terminal."""
import json
import os
import pathlib
import signal
import termios

from members import FIRST, SECOND, Member, ration
from terminal import Terminal
from harness import GIB, HANG, expect, expect_that, main

FOOTER = b"q quit"


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


def processes_come_and_go(folder):
    """A process appears and disappears without a key press, within an interval."""
    state = pathlib.Path(folder) / "state"
    with Terminal(state, "--interval", "0.1") as terminal:
        terminal.await_shown("0 processes on 0 GPUs", "no process has requested device memory under ration here;", "there is no folder\n")
        with member(folder) as process:
            lines = terminal.await_order([process.pid], "1 process on 1 GPU, 512MiB used, 1.00GiB reserved of 16.0GiB", "member 0 ")
            expect("device", lines[1], "GPU 1f2e3d4c [#-                      ] 512MiB used, 1.00GiB reserved of 16.0GiB")
            expect("group", lines[3].split()[0], "nightly")
            expect("process", lines[5].split()[0], str(process.pid))
        terminal.await_shown("no process has requested")
        terminal.type(b"q")
        terminal.expect_end(0)


def two_members(folder):
    """One holds more, the other uses a device whose UUID is larger."""
    state = pathlib.Path(folder) / "state"
    return Member(state, "0", f"{FIRST}={2 * GIB}", "named=nightly"), Member(state, "0", f"{SECOND}={GIB}", "named=other")


def keys(folder):
    """Sort, reverse, filter, help and pause."""
    large, small = two_members(folder)
    with large as first, small as second, Terminal(pathlib.Path(folder) / "state", "--interval", "0.1", columns=100) as terminal:
        ways = [first.pid, second.pid]
        terminal.await_order(ways, ">RESERVED", "2 processes on 2 GPUs")
        terminal.type(b"r")
        terminal.await_order(ways[::-1], "<RESERVED")
        terminal.type(b"p")
        terminal.await_order(sorted(ways), "<PID")
        terminal.type(b"p")
        terminal.await_order(sorted(ways)[::-1], ">PID")
        terminal.type(b"g")
        terminal.await_order(ways, "<GROUP")
        terminal.type(b"/")
        terminal.await_shown("/_  Enter keeps")
        terminal.type(b"abc\x15")
        terminal.await_shown("/_  Enter keeps")
        terminal.type(b"OTHq")
        terminal.await_shown("/OTHq_", "no process has that in its names")
        terminal.type(b"\x7f\r")
        terminal.await_order([second.pid], '1 of 2 processes with "OTH", 512MiB of 1.50GiB used', "q quit")
        terminal.type(b"\x1b")
        terminal.await_order(ways, "2 processes on 2 GPUs,")
        terminal.type(b"?")
        terminal.await_shown("the same key again reverses", "any key: back")
        terminal.type(b"x")
        terminal.await_gone("the same key again reverses")
        terminal.type(b" ")
        terminal.await_shown("paused", "space goes on")
        first.stdin.close()
        first.wait(HANG)
        terminal.type(b"c")
        terminal.await_order(ways, "<COMMAND")  # one is dead
        terminal.type(b" ")
        terminal.await_order([second.pid], "1 process on")
        terminal.await_gone("paused")
        terminal.type(b"\x1b[B\x1bOB")  # arrows: no Esc, and no letters
        terminal.type(b"/x\x1b")
        terminal.await_order([second.pid], "<COMMAND", "q quit")
        terminal.type(b"q")
        terminal.expect_end(0)


def acts_on_a_row(folder):
    """A limit of a group and a signal to a process, each after a question; what is answered with another key than y is not done."""
    state = pathlib.Path(folder) / "state"
    large, small = two_members(folder)
    with large as first, small as second, Terminal(state, "--interval", "0.1", columns=120) as terminal:
        terminal.await_order([first.pid, second.pid])
        terminal.type(b"\tL7g\r")
        terminal.await_shown("y/n: set the limit to 7g for group nightly")
        terminal.type(b"n")
        terminal.await_shown("nothing was done")
        terminal.type(b"L7g\r")
        terminal.await_shown("y/n: set the limit to 7g for group nightly")
        terminal.type(b"y")
        terminal.await_shown("limit 7.00GiB, 2.00GiB held")
        groups = json.loads(ration(state, "ps", "--json").stdout)["groups"]
        expect("limits", {group["group"]: group["limit"] for group in groups}, {"nightly": 7 * GIB, "other": None})
        terminal.type(b"Lx\ry")
        terminal.await_shown("ration: set: --limit x: ")
        terminal.type(b"\t\t\x1bOB")
        terminal.type(b"x")
        terminal.await_shown(f"signal to process {second.pid} (member 0 ", "TERM_")
        terminal.type(b"\x15KILL\r")
        terminal.await_shown(f"y/n: send KILL to process {second.pid} (member 0 ")
        expect("still there", second.poll(), None)
        terminal.type(b"y")
        expect("ended by the signal", second.wait(HANG), -signal.SIGKILL)
        terminal.await_order([first.pid])
        terminal.type(b"q")
        terminal.expect_end(0)


def many_rows(folder):
    """Rows beyond the screen are counted, and the arrow keys get there."""
    state = pathlib.Path(folder) / "state"
    devices = [f"GPU-{number:08x}-0000-0000-0000-000000000000={(number + 1) * GIB // 4}" for number in range(20)]
    with Member(state, "0", *devices, "none"), Terminal(state, "--interval", "0.1", lines=24) as terminal:
        terminal.await_shown("GPUs 1-8/20", " *1-13/20", "5.00GiB")
        terminal.type(b"\x1b[6~" * 3)
        terminal.await_shown(" *8-20/20", " 256MiB  128MiB")
        terminal.type(b"\x1b[5~" * 3)
        terminal.await_shown(" *1-13/20", "5.00GiB")
        terminal.type(b"\t\t\x1b[6~\x1b[6~")  # past the groups, of which there are none
        terminal.await_shown("GPUs *", "/20", "GPU 00000013")
        terminal.type(b"q")
        terminal.expect_end(0)


def colours(folder):
    """Colours where the terminal has them and NO_COLOR is not set; the characters are the same."""
    screens = []
    for settings, has_colours in (({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": ""}, True),
                                  ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "vt100"}, False)):
        with Member(pathlib.Path(folder) / "state", "0", f"{FIRST}={8 * GIB}", "none"), \
             Terminal(pathlib.Path(folder) / "state", **settings) as terminal:
            screens.append(terminal.await_shown("[######=====-  ", "q quit")[1])
            terminal.type(b"q")
            terminal.process.wait(HANG)
            while terminal.read(0):
                pass
            expect(f"colours with {settings}", bool(terminal.screen.colours - {None}), has_colours)
    expect("bars", len(set(screens)), 1)


def characters(folder):
    """Blocks where the locale is of UTF-8, else ASCII."""
    with Member(pathlib.Path(folder) / "state", "0", f"{FIRST}={8 * GIB}", "none"):
        for locale, bar in (("C.UTF-8", "[\u2588\u2588\u2588\u2588\u2588\u2588\u2592\u2592\u2592\u2592\u2592\u2591  "), ("C", "[######=====-  ")):
            with Terminal(pathlib.Path(folder) / "state", LC_ALL=locale) as terminal:
                terminal.await_shown(bar, "\u25bcRESERVED" if locale == "C.UTF-8" else ">RESERVED")
                if locale == "C":
                    expect_that("ASCII alone", terminal.screen.text().isascii())
                terminal.type(b"q")
                terminal.expect_end(0)


def any_size(folder):
    """Any terminal size, also after a resize."""
    with member(folder), Terminal(pathlib.Path(folder) / "state", "--interval", "0.1", lines=1, columns=1) as terminal:
        terminal.await_text(b"r")
        for lines, columns in ((2, 3), (24, 80), (1, 1), (5, 200), (200, 5), (24, 80)):
            terminal.resize(lines, columns)
        terminal.await_shown("q quit", "1 process on 1 GPU", "member 0 ")
        terminal.resize(6, 30)
        lines = terminal.await_shown("q quit")
        expect("lines", len(lines), 6)
        expect("title", lines[0], "1 process on 1 GPU")
        terminal.type(b"q")
        terminal.expect_end(0)


def unknown_terminal(folder):
    for kind in ("no-such-terminal", "dumb", ""):
        with member(folder), Terminal(pathlib.Path(folder) / "state", TERM=kind) as terminal:
            expect("status", terminal.process.wait(HANG), 2)
            expect("the terminal's modes", termios.tcgetattr(terminal.theirs), terminal.before)
            expect_that("says what to use", b"`ration ps`" in terminal.process.stderr.read())


def closed_terminal(folder):
    """The terminal is closed: `ration top` ends."""
    terminal = Terminal(folder)
    terminal.await_text(FOOTER)
    os.close(terminal.theirs)
    os.close(terminal.ours)
    expect_that("it ends", terminal.process.wait(HANG) in (0, -signal.SIGHUP))
    terminal.process.stderr.close()


main({"q": quits, "SIGTERM": ended_by(signal.SIGTERM), "SIGHUP": ended_by(signal.SIGHUP), "the interrupt key": interrupted,
      "processes come and go": processes_come_and_go, "keys": keys, "acts on a row": acts_on_a_row, "many rows": many_rows, "colours": colours,
      "characters": characters, "any size": any_size, "an unknown terminal": unknown_terminal, "a closed terminal": closed_terminal})
