#!/usr/bin/env python3
"""Pointer queries of a program (queries.cc) return the same with and without Ration, also for blocks of a pool."""
from harness import expect, expect_that, main, run

MACHINE = {"SIMCUDA_DEVICES": "4GiB"}
# The driver exports no pool memory by a handle of that kind.
OF_THE_DRIVER = {f"{which} block{where}, shareable": ("0 1", "0 0") for which in ("a", "a large", "a pitched")
                 for where in ("", " inside")}
DIFFERENT = {"direct": {}, "pool": {}, "async": OF_THE_DRIVER}


def answers(done):
    expect_that(f"status {done.status}, {done.err!r}, {done.out[-300:]!r}", done.status == 0 and done.err == "")
    return [line.partition(": ")[::2] for line in done.out.splitlines()]


def same(mode, **settings):
    def case(folder):
        plain = answers(run("queries", preload=None, **MACHINE))
        under_ration = answers(run("queries", folder=folder, RATION_LIMIT="1GiB", RATION_MODE=mode, **settings, **MACHINE))
        expect_that(f"{len(plain)} answers", len(plain) > 250)
        for (what, before), (also, after) in zip(plain, under_ration):
            expect("question", also, what)
            if what != "places used again":  # depends on the simulator's placement
                expect(what, after, before.replace(*DIFFERENT[mode].get(what, ("", "")), 1))
        expect("answers", len(under_ration), len(plain))
        known = dict(under_ration)
        expect("identifiers", known["identifiers"], "0 2560 blocks, 2560 of them")
        if mode == "pool":
            expect("places used again", known["places used again"].split(), ["0"])
    return case


main({
    "without a pool": same("direct"),
    "in a pool": same("pool", RATION_PREALLOCATE="256MiB"),
    "in a pool of the driver's": same("async"),
    "in a pool that grows": same("pool", RATION_PREALLOCATE="false"),
    "in a pool whose frees wait": same("pool", RATION_PREALLOCATE="256MiB", RATION_FREE="synchronous"),
})
