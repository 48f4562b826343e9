#!/usr/bin/env python3
"""Random mixtures of all allocating functions on four threads (programs/any_api.cc): STEPS. After each step the
device's own figures stay within the limit; at the end the whole limit can be allocated again."""
import random
import sys

from harness import GIB, MIB, expect, expect_that, main, run

STEPS = int(sys.argv[1])
LIMIT = GIB // 2


def mixed(mode, threads, **more):
    def case(_):
        seed = random.SystemRandom().randrange(1 << 20)
        done = run("any_api", str(seed), str(STEPS), str(threads), str(LIMIT), SIMCUDA_DEVICES="2GiB", RATION_LIMIT=LIMIT,
                   RATION_MODE=mode, **more)
        expect(f"seed {seed}: status, output {done.out!r} {done.err[-400:]!r}", done.status, 0)
        expect_that(done.out, done.out.endswith(f"{STEPS // threads * threads} steps\n"))
    return case


def exceeds(_):
    done = run("any_api", "1", "2000", "4", str(100 * MIB), SIMCUDA_DEVICES="2GiB", preload=None)
    expect("status without Ration", done.status, 3)


main({f"{mode}, {threads} thread(s)": mixed(mode, threads) for mode in ("direct", "pool", "async") for threads in (1, 4)}
     | {"a pool that grows, streams that lag": mixed("pool", 4, RATION_PREALLOCATE="false", SIMCUDA_LATENCY_US="0-200"),
        "the test bites": exceeds})
