"""Processes that share memory: each runs the ops that it reads and prints the driver's code and the values for each (peer.cc)."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[1] / "group")]

from harness import PROGRAMS, expect, expect_that  # noqa: E402
from members import Machine  # noqa: E402

INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND = "1", "2", "201", "400", "500"


# What pools are made of: the script's last argument, if it is one of these.
BACKING = sys.argv.pop() if sys.argv[-1] in ("slab", "vmm") else "slab"


class Peer:
    def __init__(self, machine, **settings):
        ration = settings.pop("ration", True)
        self.member = machine.launch([PROGRAMS / "peer"], machine.environment(ration, **settings))

    def ask(self, op):
        """(code, printed values)"""
        self.member.send(op)
        line = self.member.read()
        expect_that(f"{op}: no answer; {self.member.err()!r}", line != "")
        code, _, reported = line.partition(" ")
        return code, reported

    def code(self, op):
        return self.ask(op)[0]

    def do(self, *ops):
        """Runs ops that must succeed; returns the printed values of the last one."""
        reported = ""
        for op in ops:
            code, reported = self.ask(op)
            expect(f"{op}: {self.member.err()}", code, "0")
        return reported

    def share(self, which="own"):
        return self.do(f"share {which}")

    def kill(self):
        self.member.kill()

    def end(self):
        self.member.ends()


class Peers(Machine):
    """A machine whose processes have pools that grow on demand."""

    def __init__(self, folder, **settings):
        super().__init__(folder, **({"RATION_MODE": "pool", "RATION_BACKING": BACKING, "RATION_PREALLOCATE": "false",
                                     "RATION_LIMIT": "64MiB"} | settings))

    def peer(self, **settings):
        return Peer(self, **settings)

    def files(self):
        """Of exporters, and the sockets of those that share granules."""
        return sorted(path.name for path in self.state.glob("ipc-*"))
