#!/usr/bin/env python3
"""Forks of group members: a child neither inherits its parent's slot nor keeps it alive."""
import os
import pathlib
import select
import signal
import subprocess
import sys

from members import MIB, MODES, OBEY, REFUSED, Machine, ended_clean, expect, expect_that
from harness import HANG, SANITIZED, main

SHARED = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB"}
CHILDS = "child:init+context=0+alloc=1m+free=0+query+total=0+free_null"


def same_codes(mode):
    """The child of a process that uses CUDA gets the same codes as without Ration."""
    def case(folder):
        codes = []
        with Machine(folder, **MODES[mode], **SHARED) as machine:
            for ration in (False, True):
                member = machine.member(ration=ration)
                member.do("alloc=100m")
                member.send(CHILDS)
                codes.append([member.read() for _ in range(8)])
                member.do("alloc=200m free=0")
            expect("codes of a child", codes[1], codes[0])
            expect_that(f"refusals: {codes[0]}", "alloc=1m: 3" in codes[0] and "child: status 0" in codes[0])
            expect("holders", list(machine.reserved()), [member.pid])
            ended_clean(machine)
    return case


def outlived(killed):
    """A surviving child keeps none of its parent's memory; after exec it has a slot of its own."""
    def case(folder):
        with Machine(folder, **MODES["direct"], **SHARED) as machine:
            other = machine.member()
            member = machine.start("steps", "init", "context=0", "alloc=900m", "orphan:alloc=1m+obey",
                                   *(["die"] if killed else []))
            expect("output", [member.read() for _ in range(4)], ["init: 0", "context=0: 0", "alloc=900m: 0", "alloc=1m: 3"])
            expect("status", member.process.wait(timeout=HANG), -signal.SIGKILL if killed else 0)
            other.do("alloc=1000m free=0")
            expect("holders", machine.reserved(), {other.pid: 0})
            expect("the child, by the driver", member("alloc=1m"), 3)
            member.send(f"exec={' '.join(map(str, OBEY))}")
            member.do("init context=0 alloc=600m")
            expect("over the limit", other("alloc=500m"), REFUSED)
            held = machine.reserved()
            expect("reserved", sorted(held.values()), [0, 600 * MIB])
            child, = set(held) - {member.pid, other.pid}
            ending = os.pidfd_open(child)  # its stdout closes before the process ends
            member.process.stdin.close()
            expect("it ends", select.select([ending], [], [], HANG)[0], [ending])
            os.close(ending)
            other.do("alloc=1000m")
            ended_clean(machine)
    return case


def workers(method):
    def case(folder):
        with Machine(folder, **MODES["direct"], **SHARED) as machine:
            done = subprocess.run([sys.executable, pathlib.Path(__file__).with_name("workers.py"), method], timeout=HANG, text=True,
                                  env=machine.environment(), capture_output=True, check=False)
            expect(f"status, stderr {done.stderr}", done.returncode, 0)
            expect("codes", done.stdout, "parent 0, workers [0, 2], then [0, 0]\n")
            ended_clean(machine)
    return case


CASES = {f"mode {mode}: a child of a process that uses CUDA": same_codes(mode) for mode in MODES}
CASES |= {"a parent that ends before its child": outlived(False), "a parent that is killed": outlived(True)}
if not SANITIZED:  # an uninstrumented interpreter cannot load an instrumented driver
    CASES |= {f"multiprocessing, {method}": workers(method) for method in ("fork", "spawn", "forkserver")}
main(CASES)
