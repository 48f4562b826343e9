#!/usr/bin/env python3
"""books_test.py STEPS: random programs (books.cc), STEPS in all: at every step
the log equals what the device holds, and at the end its sums are right."""
import pathlib
import random
import sys

from harness import MIB, expect, expect_that, main, of_type, run
from log_books import added_up

STEPS = int(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 24)
DEVICE = 512 * MIB

# name: (limits by device, settings). Contexts cost nothing, so that a device holds exactly what was allocated.
CASES = {
    "preallocated at first": ([96 * MIB, 64 * MIB], {"RATION_PREALLOCATE_AFTER": "0", "RATION_HEADROOM": "0"}),
    "preallocated later": ([256 * MIB, 128 * MIB], {"RATION_HEADROOM": "0"}),
    "preallocated in part": ([96 * MIB, 200 * MIB], {"RATION_PREALLOCATE": "32MiB", "RATION_PREALLOCATE_AFTER": "1MiB"}),
    "grown on demand": ([96 * MIB, 64 * MIB], {"RATION_PREALLOCATE": "false"}),
    "grown on demand, a limit of odd bytes": ([100_000_001], {"RATION_PREALLOCATE": "false"}),
    "no limit asked": ([DEVICE, DEVICE], {"RATION_HEADROOM": "64MiB"}),
    "while work is running": ([64 * MIB], {"RATION_PREALLOCATE": "false", "SIMCUDA_LATENCY_US": "50"}),
    "a driver without cuCtxRecordEvent": ([96 * MIB, 64 * MIB], {"sim": "older"}),
    "synchronous frees": ([96 * MIB, 64 * MIB], {"RATION_FREE": "synchronous"}),
    "no pool": ([96 * MIB, 64 * MIB], {"RATION_MODE": "direct"}),
}


def case(name, seed, steps):
    limits, settings = CASES[name]
    settings = {"RATION_MODE": "pool"} | settings
    if limits[0] < DEVICE:
        settings["RATION_LIMIT"] = ",".join(f"{device}={limit}" for device, limit in enumerate(limits))

    def one(folder):
        log = pathlib.Path(folder) / "run.jsonl"
        done = run("books", str(log), str(seed), str(steps), *map(str, limits), folder=folder,
                   SIMCUDA_DEVICES=f"{len(limits)}x{DEVICE}", SIMCUDA_CONTEXT_BYTES="0", **settings)
        expect_that(f"{done.status} {done.out} {done.err}", done.status == 0 and done.err == "")
        print(f"        {done.out.strip()}")
        reported = dict((key, int(value)) for key, value in (word.split("=") for word in done.out.split()))
        for key in ("refused", "lost", "misused"):
            expect_that(f"nothing was {key}: {reported}", reported[key] > 0)
        records = done.logs["run.jsonl"]
        books = added_up(records)
        end = records[-1]
        expect("end", (end["allocs"], end["ooms"], end["failed_frees"]), (reported["taken"], reported["refused"], reported["misused"]))
        expect("live at the end", len(books.live), len(limits))
        pooled = settings["RATION_MODE"] == "pool"
        expect("has slabs", len(of_type(records, "slab_alloc")) > 0, pooled)
    return one


print(f"seed {SEED}, {STEPS} steps")
main({name: case(name, SEED + number, STEPS // len(CASES)) for number, name in enumerate(CASES)})
