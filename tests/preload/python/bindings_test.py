#!/usr/bin/env python3
"""A program of bindings/ without Ration, and under it in each mode: bindings_test.py SOURCE_DIR PROGRAM [FILL_UNIT]

It prints the same wherever no limit is met. Where one is, it is met exactly: what fits into the limit is what fits into a
device of that size, FILL_UNIT bytes a piece, each time that all of it was given back. Ends with 77 (skipped) only where no
package index answers.
"""
import os
import pathlib
import re
import subprocess
import sys

from client import interpreter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import BUILD, GIB, HANG, MIB, Failure, clean_environment, expect, expect_that, main, of_type, read_log  # noqa: E402

SOURCE, NAME = pathlib.Path(sys.argv[1]), sys.argv[2]
UNIT = int(sys.argv[3]) if len(sys.argv) > 3 else 0
PYTHON = interpreter(SOURCE, BUILD)
PROGRAM = pathlib.Path(__file__).resolve().parent / f"bindings/{NAME}.py"
LIMIT = 256 * MIB
# What the log must show of each: that the program's calls were met, in whichever flavour its default stream has.
MET = {
    "arrays": {"cuArray3DCreate_v2", "cuArrayCreate_v2", "cuMipmappedArrayCreate", "cuMemAlloc_v2", "cuMemAllocPitch_v2"},
    "managed": {"cuMemAllocManaged", "cuMemAlloc_v2"},
    "physical": {"cuMemCreate", "cuMemAlloc_v2"},
    "pointers": {"cuMemAlloc_v2", "cuMemAllocPitch_v2", "cuMemAllocHost_v2", "cuMemHostAlloc", "cuMemHostRegister_v2"},
    "pools": {"cuMemAllocAsync*", "cuMemAllocFromPoolAsync*"},
    "sharing": {"cuMemAlloc_v2", "cuMemAllocFromPoolAsync*", "cuMemCreate"},
}

# In mode async a piece costs steps of the driver's pool, and no block has a handle that another process could open.
EXACT = ("pool", "direct")
MODES = EXACT if NAME == "sharing" else (*EXACT, "async")
PINNED = {"pointers": f"2 MiB ({2 * MIB} bytes)"}


def said(command, folder, device, **environment):
    """By the program, in a machine of its own."""
    machine = pathlib.Path(folder) / f"machine{len(os.listdir(folder))}"
    machine.mkdir()
    child = clean_environment() | environment | {
        "LD_LIBRARY_PATH": str(BUILD / "lib/ration/sim"), "SIMCUDA_MACHINE": str(machine), "SIMCUDA_DEVICES": device,
        "RATION_STATE_DIR": f"{folder}/state", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, env=child, capture_output=True, text=True, timeout=HANG, check=False)
    except subprocess.TimeoutExpired as stuck:
        raise Failure(f"it hangs, having said {stuck.stdout!r} {stuck.stderr!r}") from stuck
    expect(f"status of {command}, having said {done.stdout[-2000:]} {done.stderr[-2000:]}", done.returncode, 0)
    return done.stdout, done.stderr


def limited(mode, limit, folder, *arguments, **environment):
    """What the program says under Ration, and the records of its log."""
    log = pathlib.Path(folder) / f"{mode}.jsonl"
    command = [BUILD / "bin/ration", "run", "--mode", mode, "--limit", str(limit), "--log", log, "--", PYTHON, PROGRAM, *arguments]
    out, summary = said(command, folder, "2GiB", **environment)
    expect("pinned memory in the summary", re.findall("pinned host memory: .*", summary),
           [f"pinned host memory: peak {PINNED[NAME]}, no limit"] if NAME in PINNED and "fill" not in arguments else [])
    return out, read_log(log)


def check_books(records, limit):
    """All of it was given back, and no more than the limit was ever held."""
    end = records[-1]
    expect("last record", end["t"], "end")
    expect("what lives on", [device for device in end["live"] if device["count"] or device["bytes"]], [])
    expect_that(f"more than the limit was held: {end['reserved_peak']}", max(end["reserved_peak"]) <= limit)


def the_same(flavour, **settings):
    def case(folder):
        plain, _ = said([PYTHON, PROGRAM], folder, "2GiB", SIMCUDA_CONTEXT_BYTES="0", **settings)
        expect_that(f"no bytes are another's: {plain}", plain and "OTHER BYTES" not in plain)
        for mode in MODES:
            seen, records = limited(mode, GIB, folder, SIMCUDA_CONTEXT_BYTES="0", **settings)
            expect(f"said in mode {mode}", seen.splitlines(), plain.splitlines())
            met = {record["api"] for record in of_type(records, "alloc")}
            flavoured = {api.replace("*", flavour) for api in MET[NAME]}
            expect(f"calls met in mode {mode}", flavoured - met, set())
            check_books(records, GIB)
    return case


def to_the_bound(mode):
    def case(folder):
        alone = said([PYTHON, PROGRAM, "fill"], folder, str(LIMIT), SIMCUDA_CONTEXT_BYTES="0")[0].splitlines()
        pieces = LIMIT // UNIT
        expect("a device of that size", alone[:2], [
            f"{turn}: {pieces} pieces, 0 with other bytes, then CUDA_ERROR_OUT_OF_MEMORY" for turn in ("at first", "again")])
        # One slab from the first block on: what several slabs have left over at their ends is no room for a piece.
        seen, records = limited(mode, LIMIT, folder, "fill", SIMCUDA_CONTEXT_BYTES="0", RATION_PREALLOCATE_AFTER="0")
        expect("a limit of that size", seen.splitlines(), alone)
        expect("refused because of", {record["reason"] for record in of_type(records, "oom")}, {"limit"})
        check_books(records, LIMIT)
    return case


main({"the default stream is everybody's": the_same(""),
      "each thread has a default stream": the_same("_ptsz", CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="1")}
     | ({f"to the bound in mode {mode}": to_the_bound(mode) for mode in EXACT} if UNIT else {}))
