#!/usr/bin/env python3
"""A growing pool stays small where few blocks live (turnover.cc), also where the driver says what is clean only to a call
that waits: what it took, other processes would lack."""

from harness import GIB, MIB, expect, expect_that, main, run

DRIVERS = {"with cuCtxRecordEvent": ("sim", {}), "without": ("older", {"SIMCUDA_MISSING": "cuCtxRecordEvent"})}
LIVE, BLOCK, CAP = 12 * MIB, MIB, 64 * MIB  # the cap: Quarantine::cap_bytes
TURNS = 10000


def turnover(folder, driver, threads, words, settings):
    sim, missing = DRIVERS[driver]
    done = run("turnover", str(threads), str(TURNS // threads), *words, sim=sim, RATION_MODE="pool",
               RATION_PREALLOCATE="false", RATION_STATE_DIR=folder, **settings, **missing)
    expect(f"status, having said {done.out!r} {done.err[-500:]!r}", done.status, 0)
    return dict((line.split()[0], int(line.split()[1])) for line in done.out.splitlines())


def small(driver, threads, words, settings):
    """A pool grows where nothing clean is left: by what it has and 2 MiB. A thread frees one block beyond the cap before it
    waits."""
    def case(folder):
        figures = turnover(folder, driver, threads, words, settings)
        most = 2 * (LIVE + CAP + threads * BLOCK) + 2 * MIB
        expect_that(f"{figures['bytes']} bytes of {most}", figures["bytes"] <= most)
        # While the kernel holds a thread up between taking blocks from the queue and cleaning them, the others wait at
        # each free: of several threads only that they do not always.
        waits = TURNS * BLOCK // CAP + 1 if threads == 1 else TURNS // 2
        expect_that(f"{figures['synchronises']} of {waits} synchronises", figures["synchronises"] <= waits)
    return case


def beside(folder):
    """What another context keeps no free can wait for."""
    figures = turnover(folder, "without", 1, ("beside",), {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": GIB})
    expect_that(f"{figures['bytes']} bytes", figures["bytes"] <= GIB)


LIMITS = {"in a group": {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": 2 * GIB}, "without a limit": {}}
cases = {f"{driver}, {threads} threads, {limit}": small(driver, threads, (), settings)
         for driver in DRIVERS for threads in (1, 4) for limit, settings in LIMITS.items()}
cases |= {f"without, {threads} threads that submit work, {limit}": small("without", threads, ("working",), settings)
          for threads in (1, 4) for limit, settings in LIMITS.items()}
cases["without, beside another context"] = beside
main(cases)
