#!/usr/bin/env python3
"""No capture is ever invalidated by what Ration does meanwhile (capture_race.cc, capture_cases.cc): ROUNDS [SEED]."""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402
from harness import MIB, expect, expect_that, main, of_type, run  # noqa: E402

ROUNDS = sys.argv[1]
SEED = sys.argv[2] if len(sys.argv) > 2 else str(random.randrange(1 << 32))
DRIVERS = {"with cuCtxRecordEvent": ("sim", {}), "without": ("older", {"SIMCUDA_MISSING": "cuCtxRecordEvent"})}
MODES = ("global", "thread_local", "relaxed")
POOL = {"RATION_MODE": "pool", "RATION_HEADROOM": "0"}
harness.HANG = 120 if int(ROUNDS) <= 1000 else 1200


def race(mode, *polite, driver="with cuCtxRecordEvent", **settings):
    sim, missing = DRIVERS[driver]
    done = run("capture_race", mode, ROUNDS, SEED, *polite, sim=sim, SIMCUDA_LATENCY_US="0-100", **missing, **settings)
    print(done.out, done.err[-500:], sep="", end="", flush=True)
    expect("status", done.status, 0)


def race_in_pool(mode, driver):
    # A tight limit that the pool grows into: hits, misses that grow, misses that must clean.
    return lambda _: race(mode, driver=driver, RATION_PREALLOCATE="false", RATION_LIMIT=12 * MIB, **POOL)


def cases_in_pool(driver):
    def test(folder):
        sim, missing = DRIVERS[driver]
        done = run("capture_cases", folder=folder, sim=sim, RATION_LIMIT=16 * MIB, RATION_PREALLOCATE_AFTER="0",
                   **missing, **POOL)
        expect_that(f"capture_cases: {done.status} {done.out} {done.err[-500:]}", done.status == 0)
        refused = of_type(done.logs["run.jsonl"], "oom")
        expect_that("a refusal says that a capture was in the way", any(record["capturing"] for record in refused))
        expect_that("another one does not", not all(record["capturing"] for record in refused))
    return test


cases = {"polite threads, without Ration": lambda _: [race(mode, "polite", preload=None) for mode in MODES]}
for each in DRIVERS:
    cases |= {f"{mode}, {each}": race_in_pool(mode, each) for mode in MODES}
    cases[f"freed blocks and captures, {each}"] = cases_in_pool(each)
main(cases)
