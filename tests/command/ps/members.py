"""The command and processes in groups, for the tests of `ration ps` and `ration top`."""
import subprocess

from harness import BUILD, HANG, PROGRAMS, Failure, clean_environment, expect

RATION = BUILD / "bin/ration"
FIRST = "GPU-1f2e3d4c-0000-0000-0000-000000000001"
SECOND = "GPU-99887766-0000-0000-0000-000000000002"
TREE = "0123456789abcdef"


def environment(folder):
    return clean_environment() | {"RATION_STATE_DIR": str(folder), "TERM": "xterm"}


def ration(folder, *arguments, status=0):
    """Runs the command to its end without a terminal and checks its exit status."""
    done = subprocess.run([RATION, *arguments], env=environment(folder), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=HANG, check=False)
    if status is not None:  # None: any
        expect(f"status of {arguments}, stderr {done.stderr!r}", done.returncode, status)
    return done


class Background:
    """A process that prints "ready" and runs until the `with` block ends."""

    def __init__(self, command, settings, stderr=subprocess.DEVNULL):
        self.process = subprocess.Popen(command, env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise Failure(f"{command} is not ready")

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(HANG)


class Member(Background):
    """A process in groups, without a device."""

    def __init__(self, folder, limits, *devices_and_groups):
        super().__init__([PROGRAMS / "member", limits, *devices_and_groups], environment(folder))
