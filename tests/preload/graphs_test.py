#!/usr/bin/env python3
"""Graphs that allocate, at random, under a tight limit (programs/graphs.cc): STEPS. After each step the device's own figures
stay within the limit, and the bytes are right; at the end the whole limit can be allocated again."""
import random
import sys

from harness import MIB, expect, expect_that, main, run

STEPS = int(sys.argv[1])
LIMIT = 640 * MIB


def mixed(threads, **settings):
    def case(_):
        seed = random.SystemRandom().randrange(1 << 20)
        done = run("graphs", str(seed), str(STEPS), str(threads), str(LIMIT), SIMCUDA_DEVICES="4GiB", RATION_LIMIT=LIMIT,
                   SIMCUDA_LATENCY_US="0-100", **settings)
        expect(f"seed {seed}: status, output {done.out!r} {done.err[-400:]!r}", done.status, 0)
        expect_that(done.out, done.out.endswith(f"{STEPS // threads * threads} steps\n"))
    return case


def exceeds(_):
    done = run("graphs", "1", "2000", "1", str(LIMIT), SIMCUDA_DEVICES="4GiB", preload=None)
    expect("status without Ration", done.status, 3)


main({f"{name}, {threads} thread(s)": mixed(threads, **settings)
      for name, settings in {"granules": {"RATION_BACKING": "vmm"}, "slabs": {"RATION_BACKING": "slab"},
                             "async": {"RATION_MODE": "async"}, "direct": {"RATION_MODE": "direct"}}.items()
      for threads in (1, 3)} | {"the test bites": exceeds})
