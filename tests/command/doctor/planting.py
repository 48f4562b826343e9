"""What the tests of `ration doctor` plant trouble with: copies of the installation, folders of drivers, namespaces."""
import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess

from harness import BUILD, HANG, LIBRARIES, LIBRARY, PROGRAMS, Failure, command_environment, driver_folder, expect, expect_that

TREE = pathlib.Path(__file__).resolve().parents[3]
PLANTED = pathlib.Path(os.environ["DOCTOR_PLANTED"])
PROBE, STATIC, MUSL, OLD = (os.environ[f"DOCTOR_{name}"] for name in ("PROBE", "STATIC", "MUSL", "OLD"))
RATION = BUILD / "bin/ration"
SIMULATOR = driver_folder("sim")
INTERPOSER = PROGRAMS / "libstub.so"  # defines the driver's symbols
NOBODY = 65534
IS_ROOT = os.geteuid() == 0


class NotHere(Exception):
    """What a case needs is not permitted on this machine."""


@functools.cache
def table():
    """(severity, remedy) of each finding, from the list that the command is built from."""
    rows = re.findall(r'^RATION_FINDING\((\w+), k(\w+), "[^"]*", "((?:[^"\\]|\\.)*)"\)$',
                      (TREE / "shim/cli/doctor/findings.inc").read_text(), re.M)
    return {name: (severity.lower(), remedy) for name, severity, remedy in rows}


def environment(**more):
    """Of a healthy machine with one simulated GPU of 8 GiB. None removes a variable."""
    base = command_environment() | {"LD_LIBRARY_PATH": str(SIMULATOR), "SIMCUDA_DEVICES": "8GiB"}
    return {key: str(value) for key, value in (base | more).items() if value is not None}


class Answer:
    """What one run of `ration doctor` found, which its text and its JSON say alike."""

    def __init__(self, arguments, ration, wrapper, settings):
        words = [*wrapper, ration, "doctor"]
        text, document = (subprocess.run([*words, *more, *arguments], env=settings, stdin=subprocess.DEVNULL, capture_output=True,
                                         text=True, timeout=HANG, check=False) for more in ([], ["--json"]))
        self.text = text.stdout
        try:
            self.findings = json.loads(document.stdout)["findings"]
        except (ValueError, KeyError) as wrong:
            raise Failure(f"{arguments}: {document} {wrong}") from wrong
        troubles = sum(each["severity"] == "trouble" for each in self.findings)
        expect(f"statuses, text {text.stdout}", (text.returncode, document.returncode), (1 if troubles else 0,) * 2)
        self.status = text.returncode

    def of(self, name):
        return [each for each in self.findings if each["id"] == name]

    def expect(self, name, *words, remedy=None):
        """The finding is there, with these words and its remedy, that of the table or one with the words `remedy`; the text has both
        on lines of their own."""
        found = self.of(name)
        expect_that(f"no {name} in {self.text}", found)
        severity, of_table = table()[name]
        one = next((each for each in found if all(word in each["what"] for word in words)), None)
        expect_that(f"{name} lacks one of {words}: {found}", one)
        expect(f"severity of {name}", one["severity"], severity)
        if remedy is None:
            expect(f"remedy of {name}", one["remedy"], of_table)
        else:
            expect_that(f"{one} has the remedy {remedy!r}", remedy in one["remedy"])
        expect_that(f"{one} is not in {self.text}", f"{one['what']} ({name})\n         -> {one['remedy']}\n" in self.text)
        if severity == "trouble":
            expect("status", self.status, 1)


def doctor(*arguments, ration=RATION, wrapper=(), **more):
    return Answer([str(each) for each in arguments], ration, wrapper, environment(**more))


def copied_installation(folder):
    """bin/ration and its libraries under `folder`, which every user may read."""
    prefix = pathlib.Path(folder) / "installed"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib/ration").mkdir(parents=True)
    shutil.copy(RATION, prefix / "bin/ration")
    for name in ("libration.so", "libration-core.so"):
        shutil.copy(BUILD / "lib" / name, prefix / "lib" / name)
    shutil.copytree(SIMULATOR, prefix / "lib/ration/sim")
    os.chmod(folder, 0o755)
    return prefix


def change_bytes(path, old, new):
    """Replaces bytes of a file by as many others."""
    content = path.read_bytes()
    expect_that(f"{old} is in {path}", old in content and len(old) == len(new))
    path.write_bytes(content.replace(old, new))


def driver_folder_of(folder, **files):
    """A folder with libcuda.so.1, libnvidia-ml.so.1: files to copy, or a text that is no library."""
    made = pathlib.Path(folder) / "driver"
    made.mkdir()
    for name, source in files.items():
        target = made / {"cuda": "libcuda.so.1", "nvml": "libnvidia-ml.so.1"}[name]
        if source is None:
            target.write_text("no library")
        else:
            shutil.copy(source, target)
    return made


def permitted(*command):
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        raise NotHere(" ".join(command[:-1]))


def in_namespaces(*options, script=":"):
    """A prefix of a command: runs it in new namespaces, after `script`."""
    options = [*options] if IS_ROOT else ["--user", "--map-root-user", *options]
    permitted("unshare", *options, "true")
    return ["unshare", *options, "sh", "-ec", script + '; exec "$@"', "sh"]


def as_nobody():
    """A prefix of a command: runs it as another user."""
    if not IS_ROOT:
        raise NotHere("to become another user")
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def with_etc(folder, **files):
    """A prefix of a command: runs it with files of these texts in /etc, under names with `__` for `/`."""
    etc = pathlib.Path(folder) / "etc"
    wrapper = in_namespaces("--mount", script=f"mount --bind {etc} /etc")
    shutil.copytree("/etc", etc, symlinks=True, ignore=unreadable)
    for name, text in files.items():
        path = etc / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return wrapper


def unreadable(folder, names):
    return [name for name in names if not os.access(pathlib.Path(folder) / name, os.R_OK)]


@contextlib.contextmanager
def running(*command, **more):
    """The process ID of a command that prints `ready`, or `ready PID` of another one; it is killed at last."""
    process = subprocess.Popen([str(word) for word in command], env=environment(**more), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    try:
        words = process.stdout.readline().split()
        expect_that(f"{command} is ready: {words}", words[:1] == ["ready"])
        yield int(words[1]) if len(words) > 1 else process.pid
    finally:
        process.stdin.close()
        process.kill()
        process.wait()
        process.stdout.close()


def steps(*names):
    """A command of programs/steps.c."""
    return [PLANTED / "doctor_steps", *names]


__all__ = ["BUILD", "HANG", "INTERPOSER", "IS_ROOT", "LIBRARIES", "LIBRARY", "MUSL", "NOBODY", "NotHere", "OLD", "PLANTED", "PROBE", "RATION",
           "SIMULATOR", "STATIC", "TREE", "Failure", "as_nobody", "change_bytes", "copied_installation", "doctor", "driver_folder_of",
           "environment", "expect", "expect_that", "in_namespaces", "permitted", "running", "steps", "table", "with_etc"]
