#!/usr/bin/env python3
"""What keeps memory allocated and what releases it (programs/holds.cc): the free memory after each step."""
from harness import MIB, expect, main, of_type, run

LIMIT = 512
HELD = LIMIT - 100
TWICE = HELD - 100
POOLED = LIMIT - 128  # the driver's pools grow by 32 MiB

# name: operations, each with the free memory that the device must then have
STEPS = {
    "a mapping keeps released memory": [("create", HELD), ("map", HELD), ("release", HELD), ("unmap", LIMIT)],
    "a handle keeps unmapped memory": [("create", HELD), ("map", HELD), ("unmap", HELD), ("release", LIMIT)],
    "so does a handle that was retained": [
        ("create", HELD), ("map", HELD), ("retain", HELD), ("release", HELD), ("unmap", HELD), ("release", LIMIT)],
    "a sparse array keeps released memory": [
        ("tiles", HELD), ("sparse", HELD), ("lay", HELD), ("release", HELD), ("lift", LIMIT)],
    "a sparse array keeps it until its last tile is unmapped": [
        ("tiles", HELD), ("sparse", HELD), ("lay", HELD), ("release", HELD), ("lift_first", HELD), ("lift_others", LIMIT)],
    "a handle keeps memory that no array uses any more": [
        ("tiles", HELD), ("sparse", HELD), ("lay", HELD), ("lift", HELD), ("release", LIMIT)],
    "a destroyed sparse array releases its memory": [
        ("tiles", HELD), ("sparse", HELD), ("lay", HELD), ("release", HELD), ("destroy_array", LIMIT)],
    "an array mapped to another piece releases the first": [
        ("tiles", HELD), ("sparse", HELD), ("lay", HELD), ("release", HELD), ("tiles", TWICE), ("lay", HELD), ("lift", HELD),
        ("release", LIMIT)],
    "an array of deferred mapping uses one piece, in a thread's stream": [
        ("tiles", HELD), ("deferred", HELD), ("lay_all", HELD), ("release", HELD), ("lift_all", LIMIT)],
    "a pool keeps freed memory until it is trimmed": [
        ("pool_here", LIMIT), ("take", POOLED), ("free", POOLED), ("trim", LIMIT)],
    "a destroyed pool releases its memory": [
        ("pool_here", LIMIT), ("take", POOLED), ("free", POOLED), ("destroy", LIMIT)],
    "a destroyed pool releases its memory with its last block": [
        ("pool_here", LIMIT), ("take", POOLED), ("destroy", POOLED), ("free", LIMIT)],
}
# These operations log a sample when they happen, not at the next query of free memory.
SAMPLED = {"trim": "cuMemPoolTrimTo"}


def held(mode, steps, elsewhere=False):
    def case(folder):
        done = run("holds", *(op for op, _ in steps), folder=folder, SIMCUDA_DEVICES="2x2GiB", RATION_LIMIT=LIMIT * MIB,
                   RATION_MODE=mode)
        expect("status, stderr", (done.status, done.err), (0, ""))
        printed = [f"{op}=0 {LIMIT} {free}" if elsewhere else f"{op}=0 {free} {LIMIT}" for op, free in steps]
        expect("lines", done.out.splitlines(), printed)
        samples = [record["api"] for record in of_type(done.logs["run.jsonl"], "sample")]
        expect("sampled by", [api for api in samples if api in SAMPLED.values()], [SAMPLED[op] for op, _ in steps if op in SAMPLED])
    return case


THERE = [("pool_there", LIMIT), ("take", POOLED), ("free", POOLED), ("trim", LIMIT)]
main({f"{name}, {mode}": held(mode, steps) for mode in ("direct", "pool") for name, steps in STEPS.items()}
     | {f"a pool uses the memory of its own device, {mode}": held(mode, THERE, elsewhere=True) for mode in ("direct", "pool")})
