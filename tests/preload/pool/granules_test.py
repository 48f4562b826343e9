#!/usr/bin/env python3
"""A pool of granules (RATION_BACKING=vmm) serves what one of slabs cannot, and looks like any other (granules.cc)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import GIB, MIB, expect, expect_that, main, run  # noqa: E402

SETTINGS = {"preallocated": {}, "preallocated at first": {"RATION_PREALLOCATE_AFTER": "0"},
            "grown on demand": {"RATION_PREALLOCATE": "false"}}
INVALID = 1
ANSWERS = {
    "every_second": [f"blocks: {64 * MIB // (4 * MIB)}", "cuMemAlloc: 0", "cuMemsetD8: 0", "cuMemGetAddressRange: 0", "the range: 0",
                     "every byte is its owner's: 0", "cuMemFree: 0", f"again: {INVALID}"],
    "doors": ["managed: 16", "handles: 16", "blocks: 16"],
    "busy": ["cuMemAllocManaged: 0"],
    "lives": ["blocks: 16", "cuMemAlloc: 0"] * 3,
    "questions": ["cuPointerGetAttribute: 0", "its context: 0", f"cuMemRetainAllocationHandle: {INVALID}", f"cuMemUnmap: {INVALID}",
                  "cuMemsetD8: 0", "cuCtxSynchronize: 0"],
}


def answered(case, settings):
    def one(folder):
        limit = 64 * MIB if case == "every_second" else GIB
        done = run("granules", case, folder=folder, RATION_MODE="pool", RATION_BACKING="vmm", RATION_LIMIT=limit, **settings)
        expect("status", (done.status, done.err), (0, ""))
        expect("answers", done.out.splitlines(), ANSWERS[case])
        slabs = [record for record in done.logs["run.jsonl"] if record["t"] == "slab_alloc"]
        expect_that("made of granules", slabs and all(slab["backend"] == "cuMemCreate" for slab in slabs))
    return one


def without(_):
    """A device that has none gets slabs, and the user a line."""
    done = run("granules", "questions", RATION_MODE="pool", RATION_BACKING="vmm", RATION_LIMIT=GIB, SIMCUDA_ATTRIBUTES="102=0")
    expect_that(f"said {done.err!r}", "cannot map granules" in done.err)
    expect("answers", done.out.splitlines(), ANSWERS["questions"])
    quiet = run("granules", "questions", RATION_MODE="pool", RATION_BACKING="auto", RATION_LIMIT=GIB, SIMCUDA_ATTRIBUTES="102=0")
    expect("auto", (quiet.out.splitlines(), quiet.err), (ANSWERS["questions"], ""))


def a_first_granule_fails(_):
    """A driver that promises granules and gives none."""
    done = run("granules", "questions", RATION_MODE="pool", RATION_BACKING="auto", RATION_LIMIT=GIB, SIMCUDA_FAIL="cuMemMap@1:801")
    expect("answers", (done.out.splitlines(), done.err), (ANSWERS["questions"], ""))


main({f"{case}, {name}": answered(case, settings) for case in ANSWERS for name, settings in SETTINGS.items()}
     | {"a device without granules": without, "a first granule fails": a_first_granule_fails})
