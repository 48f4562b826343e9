"""Runs programs, each in a session of its own that is killed as a whole when its time is up.

Output goes to files, not pipes: a grandchild that lives on cannot keep a run from ending. Threads: any.
"""
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass

_alive = set()
_lock = threading.Lock()


class OutOfTime(Exception):
    """The whole run has used up its time."""


class Clock:
    """The time that the whole run may take."""

    def __init__(self, seconds):
        self._end = time.monotonic() + seconds

    def left(self):
        return self._end - time.monotonic()

    def at_most(self, seconds):
        """So many seconds, or what is left of the run; raises OutOfTime where that is nearly nothing."""
        if self.left() < 2:
            raise OutOfTime
        return min(seconds, self.left())


@dataclass
class Ended:
    status: int  # of the exit; negative: the signal that ended it; None: killed when its time was up
    out: str
    err: str
    seconds: float

    def why(self):
        """One line for a note: how it ended, and the last line that it wrote on stderr."""
        how = "timed out" if self.status is None else f"ended with {self.status}"
        last = [line for line in self.err.splitlines() if line.strip()][-1:]
        return f"{how} after {self.seconds:.1f} s" + (f": {last[0][:300]}" if last else "")

    def tail(self, lines=12):
        """The ends of both outputs, for the figures of a failed test."""
        return {"stdout": self.out.splitlines()[-lines:], "stderr": self.err.splitlines()[-lines:]}


def _session_of(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[3])


def kill_session(leader):
    """SIGKILL for each process of the session that `leader` began; `ration run` gives its command a group of its own."""
    for entry in os.listdir("/proc"):
        if entry.isdigit() and _session_of(entry) == leader:
            try:
                os.kill(int(entry), signal.SIGKILL)
            except ProcessLookupError:
                pass


def kill_all():
    with _lock:
        for leader in list(_alive):
            kill_session(leader)


def start(command, environment, **options):
    """A process in a new session; end it with finish()."""
    with _lock:
        process = subprocess.Popen([str(word) for word in command], env=environment, start_new_session=True, **options)
        _alive.add(process.pid)
    return process


def finish(process, seconds):
    """Waits so long for its end, then kills what is left of its session. Returns the status, None where it was killed."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        kill_session(process.pid)
        process.wait()
        with _lock:
            _alive.discard(process.pid)


def run(command, environment, seconds, folder=None):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begun = time.monotonic()
        try:
            process = start(command, environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder)
        except OSError as failure:
            return Ended(127, "", str(failure), 0.0)
        status = finish(process, seconds)
        took = time.monotonic() - begun
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return Ended(status, *texts, took)
