#!/usr/bin/env python3
"""No capture is ever invalidated by what Ration does meanwhile (capture_race.cc, capture_cases.cc): ROUNDS [SEED]."""
import random
import sys

import harness
from harness import MIB, expect, expect_that, main, of_type, run

ROUNDS = sys.argv[1]
SEED = sys.argv[2] if len(sys.argv) > 2 else str(random.randrange(1 << 32))
DRIVERS = {"with cuCtxRecordEvent": ("sim", {}), "without": ("older", {"SIMCUDA_MISSING": "cuCtxRecordEvent"})}
MODES = ("global", "thread_local", "relaxed")
POOL = {"RATION_MODE": "pool", "RATION_HEADROOM": "0"}
LONG = int(ROUNDS) > 1000
harness.HANG = 1200 if LONG else 120


def race(mode, *polite, driver="with cuCtxRecordEvent", ways="graph", **settings):
    sim, missing = DRIVERS[driver]
    rounds = ROUNDS if ways == "graph" or LONG else str(int(ROUNDS) // 4)
    done = run("capture_race", mode, rounds, SEED, ways, *polite, sim=sim, SIMCUDA_LATENCY_US="0-100", **missing, **settings)
    print(done.out, done.err[-500:], sep="", end="", flush=True)
    expect("status", done.status, 0)
    return done


def race_in_pool(mode, driver, ways="graph"):
    # A tight limit that the pool grows into: hits, misses that grow, misses that must clean.
    return lambda _: race(mode, driver=driver, ways=ways, RATION_PREALLOCATE="false", RATION_LIMIT=12 * MIB, **POOL)


def unheard_of(mode, driver):
    """A driver with a way into capture that no hook knows: nothing of ours invalidates one. Beyond the pool, a program's
    own call does in the global mode, as natively."""
    def test(_):
        done = race(mode, *(["polite"] if mode == "global" else []), driver=driver, ways="unheard_of", RATION_PREALLOCATE="false", RATION_LIMIT=12 * MIB, SIMCUDA_UNHEARD_OF="1", **POOL)
        expect_that(f"one line says so: {done.err}", done.err.count("cuStreamBeginCaptureUnheardOf is newer") == 1 and done.err.count("\n") == 1)
    return test


def cases_in_pool(driver):
    def test(folder):
        sim, missing = DRIVERS[driver]
        done = run("capture_cases", folder=folder, sim=sim, RATION_LIMIT=16 * MIB, RATION_PREALLOCATE_AFTER="0",
                   **missing, **POOL)
        expect_that(f"capture_cases: {done.status} {done.out} {done.err[-500:]}", done.status == 0)
        refused = of_type(done.logs["run.jsonl"], "oom")
        expect_that("a refusal says that a capture was in the way", any(record["capturing"] for record in refused))
        expect_that("another one does not", not all(record["capturing"] for record in refused))
        done = run("capture_cases", "beside", folder=folder, sim=sim, RATION_LIMIT=16 * MIB + 300, RATION_PREALLOCATE="false", **missing, **POOL)
        expect_that(f"beside the pool: {done.status} {done.out} {done.err[-500:]}", done.status == 0)
        expect("blocks beside the pool", sum(record["src"] == "driver" for record in of_type(done.logs["run.jsonl"], "alloc")), 2)
    return test


cases = {"polite threads, without Ration": lambda _: [race(mode, "polite", preload=None, ways=ways)
                                                    for mode in MODES for ways in ("graph", "again", "graphics")]}
for each in DRIVERS:
    cases |= {f"{mode}, {each}": race_in_pool(mode, each) for mode in MODES}
    # What is captured for a graphics interface forbids as much as the global mode does.
    cases |= {f"{mode}, {ways}, {each}": race_in_pool(mode, each, ways) for ways in ("again", "graphics") for mode in MODES
              if (ways == "again" or mode == "global") and (each == "with cuCtxRecordEvent" or LONG)}
    cases |= {f"{mode}, unheard of, {each}": unheard_of(mode, each) for mode in MODES if each == "with cuCtxRecordEvent" or LONG}
    cases[f"freed blocks and captures, {each}"] = cases_in_pool(each)
main(cases)
