"""Concurrent processes in groups, driven step by step, and the figures of the ledger and the simulated device.

No test sleeps: a step has ended when its output line has been read."""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import BUILD, HANG, LIBRARIES, MIB, PROGRAMS, SANITIZED, Failure, clean_environment, driver_folder, expect, expect_that  # noqa: E402, E501

CONTEXT = MIB  # device memory of each context
REFUSED = 2
RATION = BUILD / "bin/ration"
OBEY = (PROGRAMS / "steps", "obey")
MODES = {"direct": {"RATION_MODE": "direct"},
         "pool": {"RATION_MODE": "pool", "RATION_PREALLOCATE": "false"}}  # slabs are allocated on demand


class Member:
    """A program that executes lines of its stdin (the ops of steps.cc)."""

    def __init__(self, command, environment, folder):
        self.errors = folder / f"err.{len(list(folder.glob('err.*')))}"
        with self.errors.open("w") as err:
            self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=err, text=True, bufsize=1)
        self.pid = self.process.pid

    def __call__(self, op):
        """Executes one op and returns its code; the whole output line is in `said`."""
        self.send(op)
        self.said = self.read()
        seen = re.fullmatch(rf"(.*){re.escape(op)}: (-?\d+)", self.said)
        if seen is None:
            raise Failure(f"{op}: {self.said!r} {self.err()!r}")
        return int(seen[2])

    def send(self, op):
        try:
            self.process.stdin.write(op + "\n")
            self.process.stdin.flush()
        except BrokenPipeError as gone:
            raise Failure(f"{op}: the process has ended; stderr {self.err()!r}") from gone

    def read(self):
        return self.process.stdout.readline().rstrip("\n")

    def do(self, ops):
        """Executes ops that must all succeed."""
        for op in ops.split():
            expect(f"{op}: {self.err()}", self(op), 0)

    def memory(self):
        """(free, total) of cuMemGetInfo."""
        self.do("query")
        return tuple(int(number) for number in re.findall(r"=(\d+)", self.said))

    def err(self):
        return self.errors.read_text()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        """Closes its stdin and returns its exit status."""
        self.process.stdin.close()
        try:
            return self.process.wait(timeout=HANG)
        except subprocess.TimeoutExpired as stuck:
            raise Failure("a member does not end") from stuck

    def ends(self, status=0, said=""):
        """Ends it with `status`; stderr is read afterwards, so that it has what was printed at the end."""
        ended = self.end()
        # LeakSanitizer's tracer sometimes crashes by itself, after the program's end: that says nothing about the program.
        if SANITIZED and ended == 1 and re.search(r"Tracer caught signal \d+.*\n.*LeakSanitizer has encountered a fatal error", self.err()):
            return
        expect(f"status, having said {said} {self.err()!r}", ended, status)


class Machine:
    """One simulated machine and one state folder. As a context manager it kills the members that still run."""

    def __init__(self, folder, devices="4GiB", **settings):
        self.folder = pathlib.Path(folder)
        self.state = self.folder / "state"
        (self.folder / "machine").mkdir(parents=True)
        self.simulated = {"SIMCUDA_DEVICES": devices, "SIMCUDA_CONTEXT_BYTES": str(CONTEXT),
                          "SIMCUDA_MACHINE": str(self.folder / "machine")}
        self.settings = settings
        self.members = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            if member.process.poll() is None:
                member.kill()
            member.process.stdin.close()
            member.process.stdout.close()

    def environment(self, ration=True, **settings):
        child = clean_environment() | self.simulated
        child["LD_LIBRARY_PATH"] = f"{driver_folder('sim')}:{PROGRAMS}:{BUILD}/lib/ration/sim"
        if ration:
            child |= {"LD_PRELOAD": LIBRARIES, "RATION_STATE_DIR": str(self.state)} | self.settings
        return child | {key: str(value) for key, value in settings.items()}

    def start(self, program="steps", *arguments, ration=True, **settings):
        command = [PROGRAMS / program, *(arguments or (["obey"] if program == "steps" else []))]
        return self.launch(command, self.environment(ration, **settings))

    def ration_run(self, *flags, **settings):
        """`ration run FLAGS -- steps obey`; `pid` is that of `ration`, not of the program."""
        settings = {"RATION_STATE_DIR": str(self.state)} | self.settings | settings
        return self.launch([RATION, "run", *flags, "--", *OBEY], self.environment(ration=False, **settings))

    def launch(self, command, environment):
        self.members.append(Member(command, environment, self.folder))
        return self.members[-1]

    def member(self, device=0, **settings):
        """A process with a context."""
        member = self.start(**settings)
        member.do(f"init context={device}")
        return member

    def ps(self):
        """The snapshot of `ration ps`, which also returns the memory of dead members."""
        done = subprocess.run([RATION, "ps", "--json"], env=self.environment(ration=False) |
                              {"RATION_STATE_DIR": str(self.state)}, capture_output=True, text=True, timeout=HANG, check=False)
        expect(f"ration ps: {done.stderr}", done.returncode, 0)
        return json.loads(done.stdout)

    def reserved(self, group="g"):
        """{pid: bytes} of a group on its only device; the group's total must be their sum."""
        seen = self.ps()
        held = {row["pid"]: row["reserved_bytes"] for row in seen["processes"]
                if group in [one["group"] for one in row["groups"]]}
        expect("the total of the group", [row["reserved_bytes"] for row in seen["groups"] if row["group"] == group] or [0],
               [sum(held.values())])
        return held

    def watcher(self):
        """A process without Ration that queries the device."""
        return self.member(ration=False)


def held_by_device(watcher, contexts):
    """Bytes that the simulated device holds, without `contexts` contexts and the watcher's own."""
    free, total = watcher.memory()
    return total - free - (contexts + 1) * CONTEXT


def ended_clean(machine):
    """Ends all members; then a snapshot must leave the state folder empty."""
    for member in machine.members:
        if member.process.poll() is None:
            member.ends()
    machine.ps()
    left = [path.name for path in machine.state.glob("*")]
    expect_that(f"left in the state folder: {left}", not left)
