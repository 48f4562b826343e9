#!/usr/bin/env python3
"""Rings of processes whose live blocks always fit together (ring.cc): none of their allocations is refused. rings ROUNDS [SEEDS]"""
import pathlib
import re
import subprocess
import sys

from members import HANG, PROGRAMS, Machine, expect, expect_that
from harness import GIB, MIB, main

ROUNDS = int(sys.argv[1])
SEEDS = range(int(sys.argv[2])) if len(sys.argv) > 2 else range(1)
MODES = {"granules": {"RATION_MODE": "pool", "RATION_BACKING": "vmm"}, "slabs": {"RATION_MODE": "pool", "RATION_BACKING": "slab"},
         "mode async": {"RATION_MODE": "async"}, "mode direct": {"RATION_MODE": "direct"}}
GROUP = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": str(GIB)}


def ring(folder, processes, sizes, seed, ration, rounds=ROUNDS, **settings):
    devices = "4GiB" if "RATION_GROUP" in settings else str(GIB + processes * MIB)  # with a context for each
    with Machine(folder, devices=devices, **settings) as machine:
        done = subprocess.run([PROGRAMS / "ring", str(processes), str(rounds), str(seed), *sizes], env=machine.environment(ration=ration),
                              capture_output=True, text=True, timeout=HANG * 20, check=False)
        print(f"  {processes} processes, seed {seed}: {done.stdout.strip()}")
        seen = {key: int(number) for key, number in re.findall(r"(\w+)=(\d+)", done.stdout)}
        expect(f"status {done.stderr!r}", done.returncode, 0)
        expect_that(f"many allocations {seen}", seen["allocations"] > ROUNDS // 4)
        expect(f"refused {seen} {done.stderr!r}", seen["refused"], 0)


def under(mode, scope):
    def case(folder):
        for seed in SEEDS:
            for processes, sizes in ((2, ("16", "128")), (4, ("64", "256")), (8, ("1", "64"))):
                (apart := pathlib.Path(folder) / f"{seed}.{processes}").mkdir()
                ring(apart, processes, sizes, seed, True, **MODES[mode], **scope)
    return case


def mixed(mode):
    def case(folder):
        for seed in SEEDS:
            (apart := pathlib.Path(folder) / f"{seed}").mkdir()
            ring(apart, 4, ("2", "64", "mixed"), seed, True, ROUNDS * 10, **MODES[mode], **GROUP)
    return case


def natively(folder):
    ring(folder, 4, ("1", "64"), 0, False)


main({"natively": natively} | {f"{mode}, {name}": under(mode, scope) for mode in MODES for name, scope in (("a group", GROUP), ("a full device", {}))} |
     {f"{mode}, by several routes": mixed(mode) for mode in ("granules", "mode direct")})
