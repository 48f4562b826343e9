#!/usr/bin/env python3
"""The pool's driver calls and system calls (lifo.cc, hit.cc): CASE [PAIRS]."""
import signal
import sys
import time

import harness
from harness import BUILD, SANITIZED, expect, expect_that, main, run

EXPORTS = str(BUILD / "tests/simcuda/generated/exports.map")
RATION = {"RATION_MODE": "pool", "RATION_LIMIT": "8GiB", "SIMCUDA_DEVICES": "16GiB"}
WARM = {"RATION_PREALLOCATE_AFTER": "0"}  # the first block brings the whole ration: from then on there are hits only
DRIVERS = {"with cuCtxRecordEvent": ("sim", {}), "without": ("older", {"SIMCUDA_MISSING": "cuCtxRecordEvent"})}
WAITS = {"cuEventSynchronize", "cuCtxSynchronize", "cuCtxSynchronize_v2", "cuStreamSynchronize"}
BEFORE_WORK_SECONDS = 0.01  # so often at most; a sanitizer's build lasts longer for as many pairs
FREE_OF_CHARGE = {"cuCtxGetCurrent"}
GRANULES = 2048  # that a pool has at most
PAIRS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000


def calls_of(done):
    expect(f"status, having said {done.out!r} {done.err[-500:]!r}", done.status, 0)
    lines = [line.split() for line in done.out.splitlines()]
    expect_that("the exports are watched", any(words[0] == "watched" and int(words[1]) > 500 for words in lines))
    return {words[1]: int(words[2]) for words in lines if words[0] == "calls"}


def lifo(driver, own):
    sim, missing = DRIVERS[driver]
    start = time.monotonic()
    calls = calls_of(run("lifo", str(PAIRS), EXPORTS, *own[:1], sim=sim, **RATION, **missing))
    turns = int((time.monotonic() - start) / BEFORE_WORK_SECONDS)
    for symbol in own[1:]:
        expect(f"calls of {symbol}", calls.pop(symbol, 0), PAIRS)
    waits = sum(count for symbol, count in calls.items() if symbol in WAITS)
    ours = sum(count for symbol, count in calls.items() if symbol not in FREE_OF_CHARGE)
    print(f"{driver}: {PAIRS} pairs, {waits} waits, {ours} driver calls: {calls}")
    expect_that(f"{waits} waits", waits * 3000 <= PAIRS)
    # With work queued it must query again for what has not passed yet, as often as the device is late; and before work
    # what was freed gets a fence, which is recorded and asked for. Each granule of the pool's growth costs ten, once.
    granules = calls.get("cuMemCreate", 0)
    expect_that(f"{granules} granules", granules <= GRANULES)
    expect_that(f"{ours} driver calls", ours <= PAIRS / 100 + 10 * granules + 3 * turns * bool(own))
    expect_that("no driver call at all: nothing was ever cleaned", ours > 0)


def hit_calls(**settings):
    def case(_):
        calls = calls_of(run("hit", EXPORTS, **RATION, **settings))
        expect("driver calls", set(calls), FREE_OF_CHARGE)
        # Few frees are no hits: those that publish figures.
        expect_that(f"{calls} for 500 pairs", sum(calls.values()) <= 1010)
    return case


def hit_system_calls(_):
    done = run("hit", "strict", **RATION, **WARM)
    expect(f"status, having said {done.out!r} {done.err[-500:]!r}", (done.status, done.out), (0, "no system call\n"))


def filter_bites(_):
    expect("status", run("hit", "strict-control", **RATION, **WARM).status, -signal.SIGSYS)


if sys.argv[1] == "lifo":
    harness.HANG = 900
    MEMSET = ("memset", "cuMemsetD8Async")
    main({f"{driver}{', each with a memset' if own else ''}":
          (lambda _, driver=driver, own=own: lifo(driver, own)) for driver in DRIVERS for own in ((), MEMSET)})
else:
    cases = {"a hit makes no driver call": hit_calls(**WARM),
             "nor with so little live that nothing is preallocated": hit_calls(RATION_PREALLOCATE_AFTER="32MiB"),
             "nor of slabs": hit_calls(RATION_PREALLOCATE_AFTER="32MiB", RATION_BACKING="slab")}
    if not SANITIZED:  # a sanitizer's allocator has system calls of its own
        cases |= {"a hit makes no system call": hit_system_calls, "the filter works": filter_bites}
    main(cases)
