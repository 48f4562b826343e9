#!/usr/bin/env python3
"""What ends memory waits under Ration as it does natively, no more and no less: the driver's own cases (waits_test.cc of
the conformance suite), all in mode direct, and those that are not about the blocks of a pool in the others."""
from harness import BUILD, expect_that, main, run

SUITE = str(BUILD / "tests/simcuda/conformance/simcuda_conformance")


def as_driver(cases, **settings):
    def case(_):
        done = run(SUITE, cases, SIMCUDA_DEVICES="2x8GiB", RATION_LIMIT="4GiB", **settings)
        expect_that(f"all cases passed, and some ran: {done.out[-2000:]} {done.err[-500:]}",
                    done.status == 0 and "All tests passed (" in done.out)
    return case


main({"every case, natively": as_driver("[waits]", preload=None),
      "every case in mode direct": as_driver("[waits]", RATION_MODE="direct"),
      "in mode async": as_driver("[waits]~[block]", RATION_MODE="async")}
     | {f"over {backing}": as_driver("[waits]~[block]", RATION_BACKING=backing, RATION_PREALLOCATE="false")
        for backing in ("slab", "vmm")})
