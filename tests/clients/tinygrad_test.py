#!/usr/bin/env python3
"""tinygrad's CUDA device: tensors to the device and back, and as many as a device of the limit's size holds."""
import pathlib
import subprocess

from clients import MODES, limited, python, run, same_in_every_mode, skip
from harness import MIB, expect, expect_that, main

PYTHON = python()
PROGRAM = pathlib.Path(__file__).resolve().parent / "tinygrad_program.py"
if subprocess.run([PYTHON, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], check=False).returncode:
    skip("this release of tinygrad needs Python 3.11")
SIZE = 64 * MIB


def the_same(folder):
    seen = same_in_every_mode([PYTHON, PROGRAM], folder, calls=("cuMemAlloc_v2",))
    expect_that(f"all bytes came back: {seen}", "0 of 10 differ" in seen)


def to_the_limit(mode):
    def case(folder):
        alone, _ = run([PYTHON, PROGRAM, "fill"], folder, str(SIZE))
        expect("a device of that size", alone, f"{SIZE // (4 * MIB)} tensors, then CUDA Error 2, out of memory\n" * 2)
        # One slab from the first block on: the unused ends of several slabs have no room for a tensor.
        seen, _ = run([PYTHON, PROGRAM, "fill"], folder, "2GiB", RATION_PREALLOCATE_AFTER="0", **limited(mode, SIZE))
        expect("a limit of that size", seen, alone)
    return case


main({"the same tensors": the_same} | {f"to the limit in mode {mode}": to_the_limit(mode) for mode in MODES})
