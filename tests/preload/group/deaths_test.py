#!/usr/bin/env python3
"""Killed members: the others get their memory, and the ledger stays exact: deaths_test.py KILLS [SEED]."""
import pathlib
import random
import sys

from members import MIB, MODES, Machine, ended_clean, expect, held_by_device
from harness import GIB, main, of_type, read_log

KILLS = int(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
SHARED = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB"}
SLOW = {"SIMCUDA_RETURN_MS": "200"}  # the device releases memory this much later than the kernel releases locks


def inherits(mode, after_query):
    """The device has only the group's limit and the contexts."""
    def case(folder):
        with Machine(folder, devices=str(GIB + 3 * MIB), **MODES[mode], **SHARED) as machine:
            machine.simulated |= SLOW
            watcher, victim, survivor = machine.watcher(), machine.member(), machine.member()
            victim.do("alloc=700m")
            survivor.do("alloc=100m")
            victim.kill()
            if after_query:  # a snapshot of another process may come first
                expect("reserved", list(machine.reserved()), [survivor.pid])
            survivor.do("alloc=800m")
            expect("the device holds the reserved bytes", held_by_device(watcher, 1), sum(machine.reserved().values()))
            ended_clean(machine)
    return case


def never_released(folder):
    """Memory that the device has not released cannot be allocated, although the ledger has returned it."""
    with Machine(folder, devices=str(GIB + 3 * MIB), **MODES["direct"], **SHARED) as machine:
        machine.simulated |= {"SIMCUDA_RETURN_MS": "3600000"}
        machine.watcher()
        victim, survivor = machine.member(), machine.member(RATION_LOG=machine.folder / "log")
        victim.do("alloc=700m")
        victim.kill()
        expect("code", survivor("alloc=800m"), 2)
        ended_clean(machine)
    expect("reasons", [one["reason"] for one in of_type(read_log(machine.folder / "log"), "oom")], ["device"])


def returned_meanwhile(folder):
    """The device refuses as often as anything else makes a request try again, and then has the memory: one more try is worth
    it only after a death."""
    faults = ",".join(f"cuMemAlloc_v2@{call}:2" for call in range(1, 22))
    for dies in (False, True):
        with Machine(pathlib.Path(folder) / str(dies), **MODES["direct"], **SHARED) as machine:
            victim, survivor = machine.member(), machine.member(SIMCUDA_FAIL=faults)
            victim.do("alloc=100m")
            if dies:
                victim.kill()
            expect(f"a member died: {dies}", survivor("alloc=200m"), 0 if dies else 2)


def churn(mode):
    """Processes allocate and free as fast as they can; one after the other is killed at a random point."""
    def case(folder):
        draw = random.Random(SEED)
        print(f"seed {SEED}")
        # No process exits: LeakSanitizer's last check forks a process that shares the memory and outlives its parent.
        ops = [op for i in range(300) for op in (f"alloc={1 + i * 7 % 40}m", f"free={i}")] + ["obey"]
        with Machine(folder, **MODES[mode], **SHARED) as machine:
            first, second = machine.member(), machine.member()
            first.do("alloc=100m")
            running = []
            for _ in range(KILLS):
                while len(running) < 4:
                    running.append(machine.start("steps", "init", "context=0", *ops))
                victim = running.pop(draw.randrange(4))
                for _ in range(draw.choice((0, draw.randrange(4), draw.randrange(600)))):
                    victim.read()
                victim.kill()
            for victim in running:
                victim.kill()
            second.do("alloc=900m")
            first.do("free=0 alloc=100m")
            held = machine.reserved()
            expect("holders", sorted(held), sorted((first.pid, second.pid)))
            if mode == "direct":
                expect("reserved", held, {first.pid: 100 * MIB, second.pid: 900 * MIB})
            ended_clean(machine)
    return case


CASES = {f"mode {mode}: the others get a killed member's memory{', asked for' * asked}": inherits(mode, asked)
         for mode in MODES for asked in (False, True)}
CASES |= {f"mode {mode}: killed in the middle": churn(mode) for mode in MODES}
main(CASES | {"memory that the device has not released": never_released,
              "memory that the device released after its refusal": returned_meanwhile})
