#!/usr/bin/env python3
"""All processes allocate at the same time in each round; as many succeed as the group's limit allows (rounds.cc).

rounds_test.py ROUNDS"""
import sys

from members import MIB, MODES, Machine, expect, expect_that, ended_clean
import harness
from harness import SANITIZED, main

ROUNDS = sys.argv[1]
MANY = str(300 if SANITIZED else 600 if int(ROUNDS) < 1000 else 3000 + int(ROUNDS))  # this race is rare, and a sanitizer slow
harness.HANG = 3600
BLOCK = 4 * MIB - 512  # with the granule that a slab keeps for itself: 4 MiB


def rounds(mode, processes, fit, bytes_each, limit, group=True):
    def case(folder):
        shared = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": str(limit)} if group else {"RATION_LIMIT": str(limit)}
        with Machine(folder, **MODES[mode], **shared) as machine:
            fresh = ["fresh"] if mode == "pool" else []
            member = machine.start("rounds", str(processes), ROUNDS if group else "2", str(bytes_each), str(fit),
                                   str(limit), *fresh)
            said = member.process.stdout.read()
            status = member.process.wait()
            if not group:
                expect_that(f"without a group more fit: {said}", status == 1 and f"{processes} got it" in said)
                return
            expect(f"status, output {said} {member.err()}", status, 0)
            ended_clean(machine)
    return case


def preallocations(folder):
    """Four processes preallocate 300 MiB of 1 GiB in new contexts: the fourth gets exactly what the others leave."""
    limit = 1024 * MIB
    with Machine(folder, RATION_MODE="pool", RATION_PREALLOCATE_AFTER="0", RATION_HEADROOM="0", RATION_LIMIT="300MiB",
                 RATION_PREALLOCATE="300MiB",
                 RATION_GROUP="g", RATION_GROUP_LIMIT=str(limit)) as machine:
        member = machine.start("rounds", "4", MANY, "1024", "4", str(limit), "fresh")
        said = member.process.stdout.read()
        expect(f"status, output {said} {member.err()}", member.process.wait(), 0)
        expect_that(f"the whole limit was held: {said}", f"holding {limit} at least" in said)
        ended_clean(machine)


SHAPES = [(2, 1), (4, 3), (8, 3)]
CASES = {f"{mode}: {fit} of {processes}": rounds(mode, processes, fit, size, fit * (4 * MIB) + MIB)
         for mode, size in (("direct", 4 * MIB), ("pool", BLOCK)) for processes, fit in SHAPES}
CASES |= {f"{mode}: to the last byte": rounds(mode, 4, 2, size, 2 * 4 * MIB)
          for mode, size in (("direct", 4 * MIB), ("pool", BLOCK))}
CASES |= {f"{mode}: process limits do not limit the group": rounds(mode, 4, 1, size, 5 * MIB, group=False)
          for mode, size in (("direct", 4 * MIB), ("pool", BLOCK))}
main(CASES | {"preallocation shrinks": preallocations})
