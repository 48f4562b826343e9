#!/usr/bin/env python3
"""A program of bindings/ without Ration, and under it in each mode: bindings_test.py SOURCE_DIR PROGRAM [FILL_UNIT]

Below the limit it must print the same. At the limit, as many pieces of FILL_UNIT bytes must fit as on a device of that size,
and again after all were freed. Exit status 77 (skipped) only if no package index answers.
"""
import os
import pathlib
import re
import subprocess
import sys

from client import interpreter

from harness import BUILD, GIB, HANG, MIB, Failure, clean_environment, expect, expect_that, main, of_type, read_log

SOURCE, NAME = pathlib.Path(sys.argv[1]), sys.argv[2]
UNIT = int(sys.argv[3]) if len(sys.argv) > 3 else 0
PYTHON = interpreter(SOURCE, BUILD)
PROGRAM = pathlib.Path(__file__).resolve().parent / f"bindings/{NAME}.py"
LIMIT = 256 * MIB
# The calls that the log of each program must contain; * stands for the suffix of its default stream.
CALLS = {
    "arrays": {"cuArray3DCreate_v2", "cuArrayCreate_v2", "cuMipmappedArrayCreate", "cuMemAlloc_v2", "cuMemAllocPitch_v2"},
    "managed": {"cuMemAllocManaged", "cuMemAlloc_v2"},
    "physical": {"cuMemCreate", "cuMemAlloc_v2"},
    "pointers": {"cuMemAlloc_v2", "cuMemAllocPitch_v2", "cuMemAllocHost_v2", "cuMemHostAlloc", "cuMemHostRegister_v2"},
    "pools": {"cuMemAllocAsync*", "cuMemAllocFromPoolAsync*"},
    "sharing": {"cuMemAlloc_v2", "cuMemAllocFromPoolAsync*", "cuMemCreate"},
}

# In mode async a piece takes steps of the driver's pool, and no block has an IPC handle.
EXACT = ("pool", "direct")
MODES = EXACT if NAME == "sharing" else (*EXACT, "async")
PINNED = {"pointers": "2MiB"}


def output_of(command, folder, device, **environment):
    """Stdout and stderr of the command on a simulated machine of its own."""
    machine = pathlib.Path(folder) / f"machine{len(os.listdir(folder))}"
    machine.mkdir()
    child = clean_environment() | environment | {
        "LD_LIBRARY_PATH": str(BUILD / "lib/ration/sim"), "SIMCUDA_MACHINE": str(machine), "SIMCUDA_DEVICES": device,
        "RATION_STATE_DIR": f"{folder}/state", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, env=child, capture_output=True, text=True, timeout=HANG, check=False)
    except subprocess.TimeoutExpired as stuck:
        raise Failure(f"it hangs; output {stuck.stdout!r} {stuck.stderr!r}") from stuck
    expect(f"status of {command}, output {done.stdout[-2000:]} {done.stderr[-2000:]}", done.returncode, 0)
    return done.stdout, done.stderr


def limited(mode, limit, folder, *arguments, **environment):
    """The program's output under Ration, and the records of its log."""
    log = pathlib.Path(folder) / f"{mode}.jsonl"
    command = [BUILD / "bin/ration", "run", "--mode", mode, "--limit", str(limit), "--log", log, "--", PYTHON, PROGRAM, *arguments]
    out, summary = output_of(command, folder, "2GiB", **environment)
    expect("pinned memory in the summary", re.findall("pinned host memory: .*", summary),
           [f"pinned host memory: peak {PINNED[NAME]}, no limit"] if NAME in PINNED and "fill" not in arguments else [])
    return out, read_log(log)


def check_books(records, limit):
    """Everything was freed, and the limit was never exceeded."""
    end = records[-1]
    expect("last record", end["t"], "end")
    expect("live at the end", [device for device in end["live"] if device["count"] or device["bytes"]], [])
    expect_that(f"the limit was exceeded: {end['reserved_peak']}", max(end["reserved_peak"]) <= limit)


def the_same(flavour, **settings):
    def case(folder):
        plain, _ = output_of([PYTHON, PROGRAM], folder, "2GiB", SIMCUDA_CONTEXT_BYTES="0", **settings)
        expect_that(f"no wrong bytes: {plain}", plain and "OTHER BYTES" not in plain)
        for mode in MODES:
            seen, records = limited(mode, GIB, folder, SIMCUDA_CONTEXT_BYTES="0", **settings)
            expect(f"output in mode {mode}", seen.splitlines(), plain.splitlines())
            logged = {record["api"] for record in of_type(records, "alloc")}
            flavoured = {api.replace("*", flavour) for api in CALLS[NAME]}
            expect(f"calls missing in the log of mode {mode}", flavoured - logged, set())
            check_books(records, GIB)
    return case


def to_the_limit(mode):
    def case(folder):
        alone = output_of([PYTHON, PROGRAM, "fill"], folder, str(LIMIT), SIMCUDA_CONTEXT_BYTES="0")[0].splitlines()
        pieces = LIMIT // UNIT
        expect("a device of that size", alone[:2], [
            f"{turn}: {pieces} pieces, 0 with other bytes, then CUDA_ERROR_OUT_OF_MEMORY" for turn in ("at first", "again")])
        # One slab from the first block on: the unused ends of several slabs have no room for a piece.
        seen, records = limited(mode, LIMIT, folder, "fill", SIMCUDA_CONTEXT_BYTES="0", RATION_PREALLOCATE_AFTER="0")
        expect("a limit of that size", seen.splitlines(), alone)
        expect("reasons of refusals", {record["reason"] for record in of_type(records, "oom")}, {"limit"})
        check_books(records, LIMIT)
    return case


main({"legacy default stream": the_same(""),
      "per-thread default stream": the_same("_ptsz", CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="1")}
     | ({f"to the limit in mode {mode}": to_the_limit(mode) for mode in EXACT} if UNIT else {}))
