#!/usr/bin/env python3
"""NVML reports to a process that only monitors devices the ration that it would have with CUDA."""
import json
import pathlib
import shutil
import subprocess
import sys

from watching import DEVICE, GIB, MACHINE, MIB, REAL, RESERVED, WAYS, answers, expect, expect_that, run, sizes, totals

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "group"))
from members import Machine  # noqa: E402
from harness import BUILD, HANG, LIBRARIES, LIBRARY, PROGRAMS, SANITIZED, clean_environment, main  # noqa: E402

ALL = "start index=0 index=1 index=2"


def by_every_handle(folder):
    for program in WAYS:
        for way in ("index", "uuid", "pci"):
            said = answers(program, f"start {way}=0 {way}=1 {way}=2", RATION_LIMIT="0=4GiB,2=1GiB")
            expect(f"{program} by {way}", sizes(said), [(4 * GIB, 4 * GIB), (REAL, DEVICE), (GIB, GIB)])
            expect("what the driver keeps, of a ration and of a device", [answer["v2"][1] for answer in said],
                   [0, RESERVED, 0])


def shares(folder):
    for program in WAYS:
        expect("a share is one of what NVML says", totals(answers(program, ALL, RATION_LIMIT="40%")),
               [REAL * 2 // 5] * 3)
        expect("a reserve", totals(answers(program, ALL, RATION_RESERVE="1GiB")), [REAL - GIB] * 3)
        expect("more than there is", totals(answers(program, ALL, RATION_LIMIT="20GiB")), [REAL] * 3)
        expect("what cannot be read", totals(answers(program, ALL, RATION_LIMIT="8 potatoes")), [REAL // 4 * 3] * 3)


def not_shown(folder):
    for program in WAYS:
        said = answers(program, ALL, RATION_LIMIT="2GiB", RATION_SHOW_LIMIT="false")
        expect("a limit that is not shown", sizes(said), [(REAL, 2 * GIB)] * 3)
        expect("what the driver keeps", said[0]["v2"][1], RESERVED)


def untouched(folder):
    for program in WAYS:
        for ops in ("start index=0 uuid=1 pci=2", "start asked=1"):
            plain = answers(program, ops, preload=None)
            expect("without a limit", answers(program, ops), plain)
            expect("disabled", answers(program, ops, RATION_LIMIT="1GiB", RATION_DISABLE="1"), plain)
        expect("wrong arguments", answers(program, "start asked=1", RATION_LIMIT="1GiB"), plain)
        done = run(program, "index=0", RATION_LIMIT="1GiB", **MACHINE)
        expect("before nvmlInit", (done.status, done.err), (1, "index=0 failed\n"))


def begins_nothing(folder):
    state = pathlib.Path(folder) / "state"
    for program in WAYS:
        done = run(program, *"start maps=libration-core.so index=0 maps=libcuda.so".split(), folder=folder,
                   RATION_LIMIT="1GiB", RATION_GROUP="g", RATION_STATE_DIR=state, **MACHINE)
        said = [json.loads(line) for line in done.out.splitlines()]
        expect("core before the first question, driver ever", [said[0]["mapped"], said[2]["mapped"]], [False, False])
        expect("on stderr", done.err, "")
        expect("logs", list(done.logs), [])
        expect_that("no group is joined", not state.exists())


def backwards(folder):
    limits = "0=1GiB,1=2GiB,2=3GiB"
    said = answers("monitor", ALL, RATION_LIMIT=limits, SIMCUDA_NVML_ORDER="reversed")
    expect("where NVML counts from the last", totals(said), [3 * GIB, 2 * GIB, GIB])


def neighbours(folder):
    with Machine(folder, devices="2x8GiB") as machine:
        machine.watcher().do("alloc=7000m")  # a program without Ration
        taken = 7000 * MIB + MIB
        said = answers("monitor", "start index=0 index=1", RATION_LIMIT="4GiB", **machine.simulated, SIMCUDA_NVML_RESERVED=0)
        expect("what others hold is not free", sizes(said), [(4 * GIB, DEVICE - taken), (4 * GIB, 4 * GIB)])


def raced(folder):
    for program in WAYS:
        for ops in ("start race=8", "start init context=0 race=8"):
            for _ in range(5):
                expect(ops, answers(program, ops, RATION_LIMIT="1GiB")[0], {"op": "race", "total": GIB, "same": 8})


def under_ration_run(folder):
    command = [BUILD / "bin/ration", "run", "--sim", "2x8GiB", "--limit", "40%", "--", PROGRAMS / "monitor", "start", "index=1"]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, timeout=HANG, check=False)
    expect(f"status: {done.stderr}", done.returncode, 0)
    expect("as the ration", json.loads(done.stdout)["v1"], [DEVICE * 2 // 5, DEVICE * 2 // 5, 0])


def without_a_core(folder):
    alone = shutil.copy(LIBRARY, folder)
    done = run("monitor", "start", "index=0", preload=LIBRARIES.replace(str(LIBRARY), alone), RATION_LIMIT="1GiB",
               **MACHINE)
    expect("NVML's own answer, and silence", (done.status, json.loads(done.out)["v1"][0], done.err), (0, REAL, ""))


def in_python(folder):
    client = pathlib.Path(__file__).parent / "client.py"
    done = run("../nvml/" + client.name, RATION_LIMIT="0=1GiB,1=50%", **MACHINE)
    expect(f"status: {done.err}", done.status, 0)
    expect("through ctypes", [json.loads(line) for line in done.out.splitlines()],
           [[GIB, GIB, 0], [REAL // 2, REAL // 2, 0], [REAL, DEVICE, RESERVED]])


cases = {"handles by index, UUID and bus id": by_every_handle, "shares and reserves": shares,
         "a limit that is not shown": not_shown, "what is not ours": untouched, "nothing is begun": begins_nothing,
         "NVML's own order": backwards, "neighbours": neighbours, "threads at once": raced, "ration run": under_ration_run,
         "without a core": without_a_core}
if not SANITIZED:  # Python is not instrumented
    cases["Python's ctypes"] = in_python
main(cases)
