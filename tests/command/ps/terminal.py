"""A command in a terminal of its own, for the tests of `ration ps` and `ration top`."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios

from members import RATION, environment
from screen import Screen
from harness import HANG, Failure, expect, expect_that

LEAVES_FULL_SCREEN = b"\x1b[?1049l"
SHOWS_CURSOR = b"\x1b[?25h"


class Terminal:
    """`ration top`, or another verb, in a terminal of its own; its output is collected in `shown`."""

    def __init__(self, state, *arguments, verb="top", lines=24, columns=80, **settings):
        self.shown = b""
        self.screen = Screen(lines, columns)
        self.ours, self.theirs = pty.openpty()
        self.resize(lines, columns)
        self.before = termios.tcgetattr(self.theirs)
        self.process = subprocess.Popen([RATION, verb, *arguments], env=environment(state) | {"LC_ALL": "C"} | settings, stdin=self.theirs,
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
        self.screen.resize(lines, columns)
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, timeout):
        if not select.select([self.ours], [], [], timeout)[0]:
            return b""
        some = os.read(self.ours, 65536)
        self.shown += some
        self.screen.feed(some)
        return some

    def await_screen(self, what, holds):
        """Waits until what is on the screen fulfils a condition; returns its lines."""
        while not holds(self.screen.text()):
            if not self.read(HANG):
                raise Failure(f"not on the screen: {what}; it shows\n{self.screen.text()}")
        return self.screen.text().split("\n")

    def await_shown(self, *texts):
        return self.await_screen(texts, lambda screen: all(text in screen for text in texts))

    def await_order(self, pids, *texts):
        """Rows of these processes, in this order, and the texts."""
        def holds(screen):
            rows = [line.split()[0] for line in screen.split("\n")[1:] if line.strip()]
            return [int(word) for word in rows if word.isdigit()] == pids and all(text in screen for text in texts)
        return self.await_screen((pids, *texts), holds)

    def await_gone(self, *texts):
        return self.await_screen(f"without {texts}", lambda screen: not any(text in screen for text in texts))

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
