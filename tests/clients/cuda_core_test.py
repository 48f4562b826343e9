#!/usr/bin/env python3
"""cuda-core's buffers of every memory resource: the same bytes and figures natively and in every mode."""
import pathlib

from clients import python, same_in_every_mode
from harness import MIB, expect_that, main

PYTHON = python()
# VirtualMemoryResource of this release never releases what cuMemCreate returned (NVIDIA/cuda-python, issue 2882).
LEFT = (2 + 2 + 2 + 12) * MIB
PROGRAM = pathlib.Path(__file__).resolve().parent / "cuda_core_program.py"


def case(flavour, **settings):
    def the_same(folder):
        calls = (f"cuMemAllocFromPoolAsync{flavour}", "cuMemCreate")
        seen = same_in_every_mode([PYTHON, PROGRAM], folder, calls=calls, left=LEFT, **settings)
        expect_that(f"all bytes came back: {seen}", "other bytes" not in seen and "the end" in seen)
    return the_same


main({"legacy default stream": case(""), "per-thread default stream": case("_ptsz", CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM="1")})
