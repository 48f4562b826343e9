"""What the tests of engines in Python share: they run with the packages of requirements.txt, and leave no process behind."""
import ctypes
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time

from engines import BUILD, EXAMPLES, GIB, HANG, MIB, PACKAGE, RATION, expect, expect_that, python, simulated

TOTAL = 16 * GIB
_INSIDE = "ENGINES_INSIDE"
_HERE = pathlib.Path(__file__).resolve().parent


def _children():
    for entry in pathlib.Path("/proc").iterdir():
        try:
            after_name = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if int(after_name[1]) == os.getpid():
            yield int(entry.name), after_name[0]


def inside():
    """Goes on with the interpreter of requirements.txt, in a child. Whatever that leaves behind, daemons too, is ended with it."""
    if os.environ.get(_INSIDE):
        return
    # Not as a script, which processes of multiprocessing would run again.
    command = [python(), "-c", f"import {pathlib.Path(sys.argv[0]).stem}"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    set_child_subreaper = 36  # prctl(2): orphans below this process become its children
    ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)
    status = 1
    try:
        with subprocess.Popen(command, env=os.environ | {_INSIDE: "1", "PYTHONPATH": f"{PACKAGE}:{_HERE}"}) as child:
            try:
                status = child.wait()
            finally:
                child.kill()
    finally:
        while left := dict(_children()):
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            for pid in left:
                os.waitpid(pid, 0)
    sys.exit(status)


def environment(folder, **more):
    """Of a process that starts an engine, with this build's command, package and jobs."""
    made = simulated(folder, HOME=str(folder), PYTHONPATH=f"{PACKAGE}:{_HERE}", PYTHONDONTWRITEBYTECODE="1", **more)
    made.pop(_INSIDE, None)
    made["TMPDIR"] = str(folder)
    return made | {"PATH": f"{RATION.parent}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}


class surrounded:
    """os.environ is environment(folder), for engines that are started from this process."""

    def __init__(self, folder, **more):
        self.made = environment(folder, **more)

    def __enter__(self):
        self.before = dict(os.environ)
        os.environ.clear()
        os.environ.update(self.made)

    def __exit__(self, *_):
        os.environ.clear()
        os.environ.update(self.before)


def until(what, seen):
    """Waits until seen() is true, which it returns."""
    end = time.monotonic() + HANG
    while not (found := seen()):
        expect_that(what, time.monotonic() < end)
        os.sched_yield()
    return found


def expect_exactly(what, job, limit, after_a_death=False):
    """The job saw `limit` as its device, all of it free, and got it: not a byte more, and less than two granules less.

    after_a_death: what a killed process held may come back to the device later than the job first looks at what is free."""
    expect(f"{what}: total", job["total"], limit)
    expect_that(f"{what}: {job['free']} of {limit} free", job["free"] == limit or after_a_death)
    expect_that(f"{what}: got {job['got']} of {limit}", limit - 4 * MIB < job["got"] <= limit)


def part(of_a_device, margin=0.02):
    """The limit of a job that was given this part of a device."""
    return int(TOTAL * round(of_a_device - margin, 6) + 0.0)


def end(pid):
    """Kills a process of this test, and waits for its end."""
    watched = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    expect_that(f"{pid} ended", select.select([watched], [], [], HANG)[0])
    os.close(watched)


def held():
    """Bytes that processes under Ration hold of the device."""
    done = subprocess.run([RATION, "ps", "--json"], stdout=subprocess.PIPE, text=True, check=True)
    return sum(row["reserved_bytes"] for row in json.loads(done.stdout)["processes"])


def refused(folder, pattern):
    """The refusals in the logs."""
    found = []
    for path in sorted(pathlib.Path(folder).glob(pattern)):
        found += [record for record in map(json.loads, path.read_text().splitlines()) if record["t"] == "oom"]
    return found


def expect_readme(name, folder, **more):
    """The commands of the example's README print what it says: examples/run_readme.py."""
    done = subprocess.run([sys.executable, EXAMPLES / "run_readme.py", EXAMPLES / name, BUILD], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, env=environment(folder, README_PYTHON=sys.executable, **more))
    expect_that(f"README.md of {name}:\n{done.stdout}", done.returncode == 0)
