#!/usr/bin/env python3
"""What keeps memory allocated and what releases it (programs/holds.cc): the free memory after each step."""
from harness import MIB, expect, main, of_type, run

LIMIT = 512
HELD = LIMIT - 100
TWICE = HELD - 100
POOLED = LIMIT - 128  # the driver's pools grow by 32 MiB

# name: operations, each with the free memory that the device must then have
STEPS = {
    "a mapping keeps what was released": [("create", HELD), ("map", HELD), ("release", HELD), ("unmap", LIMIT)],
    "a handle keeps what was unmapped": [("create", HELD), ("map", HELD), ("unmap", HELD), ("release", LIMIT)],
    "so does a handle that was retained": [
        ("create", HELD), ("map", HELD), ("retain", HELD), ("release", HELD), ("unmap", HELD), ("release", LIMIT)],
    "a sparse array keeps what was released": [
        ("tiles", HELD), ("sparse", HELD), ("lay", HELD), ("release", HELD), ("lift", LIMIT)],
    "a sparse array keeps it until its last tile is unmapped": [
        ("tiles", HELD), ("sparse", HELD), ("lay", HELD), ("release", HELD), ("lift_first", HELD), ("lift_others", LIMIT)],
    "a handle keeps what no array lies on any more": [
        ("tiles", HELD), ("sparse", HELD), ("lay", HELD), ("lift", HELD), ("release", LIMIT)],
    "a sparse array that is destroyed lets go": [
        ("tiles", HELD), ("sparse", HELD), ("lay", HELD), ("release", HELD), ("destroy_array", LIMIT)],
    "an array that lies on another piece lets go of the first": [
        ("tiles", HELD), ("sparse", HELD), ("lay", HELD), ("release", HELD), ("tiles", TWICE), ("lay", HELD), ("lift", HELD),
        ("release", LIMIT)],
    "an array of deferred mapping lies on one piece, in a thread's stream": [
        ("tiles", HELD), ("deferred", HELD), ("lay_all", HELD), ("release", HELD), ("lift_all", LIMIT)],
    "a pool keeps what was freed until it is trimmed": [
        ("pool_here", LIMIT), ("take", POOLED), ("free", POOLED), ("trim", LIMIT)],
    "a pool that is destroyed gives it back": [
        ("pool_here", LIMIT), ("take", POOLED), ("free", POOLED), ("destroy", LIMIT)],
    "a pool that is destroyed gives it back with its last block": [
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
     | {f"a pool takes of the device that it is on, {mode}": held(mode, THERE, elsewhere=True) for mode in ("direct", "pool")})
