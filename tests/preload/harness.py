"""Runs a program under libration.so and reads its log, for the whole-process tests.

The environment comes from ration_preload_test (preload_test.cmake).
"""
import atexit
import functools
import json
import os
import pathlib
import select
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

import log_schema

BUILD = pathlib.Path(os.environ["PRELOAD_BUILD"])
PROGRAMS = pathlib.Path(os.environ["PRELOAD_PROGRAMS"])
LIBRARIES = os.environ["PRELOAD_LIBRARIES"]
LIBRARY = BUILD / "lib/libration.so"
# The emulator of another architecture. LD_ variables are passed to the program as options, not to the emulator.
RUNNER = os.environ.get("PRELOAD_RUNNER", "").split()
SANITIZED = bool(os.environ.get("PRELOAD_SANITIZE"))

MIB, GIB = 1 << 20, 1 << 30
BLOCK = 100 * MIB
SKIPPED = 77  # the exit status, to ctest
HANG = 180 if SANITIZED else 60  # seconds; a program that takes longer is stuck
# Stops after the first failed case.
UNTIL_FAILED = bool(os.environ.get("PRELOAD_UNTIL_FAILED"))


class Failure(Exception):
    pass


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failure(f"{what}: {seen!r}, expected {wanted!r}")


def expect_that(what, holds):
    if not holds:
        raise Failure(what)


def driver_folder(name):
    return PROGRAMS / name if (PROGRAMS / name).is_dir() else BUILD / "lib/ration" / name


def clean_environment():
    dropped = ("RATION_", "SIMCUDA_", "PRELOAD_", "LD_", "CUDA_", "XLA_", "TF_", "GPU_", "CUPY_", "JULIA_", "PYTORCH_", "TENSOR_FUSION_", "NVSHARE_", "PYTHONPATH")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(dropped)}
    # Simulated calls that take their time make the suite slower, and the sizes here are of contexts that cost 256 MiB.
    return kept | {"SIMCUDA_COSTS": "0"}


def command_environment():
    """For `ration` verbs that run commands, shells among them, and programs that crash on purpose."""
    environment = clean_environment() | {"DRIVER_FOLDER": str(driver_folder("sim")), "RATION_STATE_DIR": state_folder()}
    if SANITIZED:
        for name, more in {"ASAN_OPTIONS": "handle_segv=0:detect_leaks=0:verify_asan_link_order=0", "TSAN_OPTIONS": "handle_segv=0"}.items():
            environment[name] = ":".join(filter(None, [environment.get(name), more]))
    return environment


def expect_ended(pid):
    """Waits for the end of a process that is not our child."""
    try:
        process = os.pidfd_open(int(pid))
    except ProcessLookupError:
        return
    expect_that(f"process {pid} has ended", select.select([process], [], [], HANG)[0])
    os.close(process)


def skip(why):
    """Ends a test that cannot run on this machine: says why."""
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def needs(program, package, setup="scripts/setup.sh"):
    """Skipped only where the distribution does not offer the package."""
    if shutil.which(program):
        return
    asked = subprocess.run(["apt-cache", "policy", package], stdout=subprocess.PIPE, text=True, check=False) \
        if shutil.which("apt-cache") else None
    if asked and "Candidate: (" not in asked.stdout and "Candidate:" in asked.stdout:
        sys.exit(f"{program} is missing: {setup} installs {package}")
    skip(f"{program} is missing, and no {package} is offered")


@functools.cache
def state_folder():
    folder = tempfile.mkdtemp(prefix="ration-test-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@dataclass
class Run:
    status: int
    out: str
    err: str
    logs: dict = field(default_factory=dict)  # file name -> records, when a folder was given


def command_line(program, arguments):
    path = PROGRAMS / program
    if program.endswith(".py"):
        return [sys.executable, pathlib.Path(__file__).parent / "programs" / program, *arguments]
    # Libraries are in the folder of the programs.
    arguments = [PROGRAMS / a if str(a).endswith(".so") and (PROGRAMS / a).exists() else a for a in arguments]
    return [path, *arguments]


def through_the_runner(command, environment):
    if not RUNNER:
        return command
    options = [("-E", f"{key}={environment.pop(key)}") for key in list(environment) if key.startswith("LD_")]
    return [*RUNNER, *(word for option in options for word in option), *command]


def run(program, *arguments, preload=LIBRARIES, sim="sim", folder=None, **environment):
    """Runs a program of programs/ to its end. `folder`: where RATION_LOG is written, as run.jsonl."""
    child = clean_environment()
    child["RATION_STATE_DIR"] = state_folder()  # its neighbours on the device are those of this test
    child["DRIVER_FOLDER"] = str(driver_folder(sim))
    child["LD_LIBRARY_PATH"] = f"{driver_folder(sim)}:{PROGRAMS}:{BUILD}/lib/ration/sim"
    if preload:
        child["LD_PRELOAD"] = preload
    if folder:
        child["RATION_LOG"] = str(pathlib.Path(folder) / "run.jsonl")
    child |= {key: str(value) for key, value in environment.items()}
    command = through_the_runner(command_line(program, arguments), child)
    try:
        done = subprocess.run(command, env=child, capture_output=True, text=True, timeout=HANG,
                              cwd=folder, check=False)
    except subprocess.TimeoutExpired as stuck:
        raise Failure(f"{program} hangs; so far: {stuck.stdout!r} {stuck.stderr!r}") from stuck
    logs = {path.name: read_log(path) for path in sorted(pathlib.Path(folder).glob("run.jsonl*"))} if folder else {}
    return Run(done.returncode, done.stdout, done.stderr, logs)


def read_log(path):
    """The records of a valid log: one meta first, seq consecutive from 1, every line as log.schema.json says. Empty: no
    record yet."""
    text = path.read_text()
    if not text:
        return []
    expect(f"{path.name} ends with a whole line", text[-1:], "\n")
    records = [json.loads(line) for line in text.splitlines()]
    expect("first record", (records[0]["t"], records[0]["schema"]), ("meta", "ration.events/1"))
    expect("seq", [record["seq"] for record in records[1:]], list(range(1, len(records))))
    expect(f"what is wrong in {path.name}", next(filter(None, map(log_schema.problem, records)), None), None)
    return records


def of_type(records, kind):
    return [record for record in records if record["t"] == kind]


def peak_of(records):
    """Recomputes the peak of live bytes on device 0; each free must match an allocation."""
    live, peak = {}, 0
    for record in records:
        if record["t"] == "alloc":
            expect_that(f"{record['addr']} has two owners", record["addr"] not in live)
            live[record["addr"]] = record["size"]
            peak = max(peak, sum(live.values()))
        elif record["t"] == "free":
            expect("size of the freed block", live.pop(record["addr"], None), record["size"])
    return peak


def main(cases):
    """Runs the cases (name -> function of a scratch folder) and ends the process.

    PRELOAD_LIST: prints their names instead. PRELOAD_CASE: runs only those whose name contains it.
    """
    cases = {name: case for name, case in cases.items() if os.environ.get("PRELOAD_CASE", "") in name}
    if os.environ.get("PRELOAD_LIST"):
        print(*cases, sep="\n")
        sys.exit(0)
    failed = []
    for name, case in cases.items():
        if failed and UNTIL_FAILED:
            break
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            try:
                case(folder)
                print(f"ok      {name}", flush=True)
            except Failure as failure:
                failed.append(name)
                print(f"FAILED  {name}: {failure}", flush=True)
    print(f"covered: {len(cases) - len(failed)} of {len(cases)}")
    sys.exit(1 if failed or not cases else 0)
