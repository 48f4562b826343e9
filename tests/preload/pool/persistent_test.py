#!/usr/bin/env python3
"""A kernel that ends only after later allocations have succeeded (persistent.cc) hangs none of them."""
import signal

from harness import MIB, expect, expect_that, main, run

DRIVERS = {"with cuCtxRecordEvent": ("sim", {}), "without": ("older", {"SIMCUDA_MISSING": "cuCtxRecordEvent"})}
MEMORY = {"clean memory": {"RATION_PREALLOCATE_AFTER": "0", "RATION_HEADROOM": "0"},
          "room to grow": {"RATION_PREALLOCATE": "false"}}


def persistent(case, where, driver, memory=None, mode="pool", **more):
    sim, missing = DRIVERS[driver]
    words = (case, where) if where else (case,)
    done = run("persistent", *words, sim=sim, RATION_MODE=mode, RATION_LIMIT=64 * MIB,
               **missing, **MEMORY[memory or "clean memory"], **more)
    expect_that("the watchdog ended it: an allocation or a free waits for the kernel", done.status != -signal.SIGALRM)
    expect(f"status, having said {done.out!r} {done.err[-500:]!r}", done.status, 0)


def case_of(*arguments):
    return lambda _: persistent(*arguments)


cases = {}
for where in (None, "other"):
    suffix = ", kernel in another context" if where else ""
    for driver in DRIVERS:
        for memory in MEMORY:
            cases[f"{memory}, {driver}{suffix}"] = case_of("room", where, driver, memory)
    # Only an event shows that the work before the kernel has finished.
    cases[f"blocks sealed before the kernel{suffix}"] = case_of("sealed", where, "with cuCtxRecordEvent")
main(cases)
