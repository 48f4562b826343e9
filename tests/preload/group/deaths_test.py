#!/usr/bin/env python3
"""Members that are killed: the others get their memory, and the books stay exact: KILLS [SEED]."""
import random
import sys

from members import MIB, MODES, Machine, ended_clean, expect, held_by_device
from harness import GIB, main, of_type, read_log

KILLS = int(sys.argv[1])
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
SHARED = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB"}
SLOW = {"SIMCUDA_RETURN_MS": "200"}  # the device gives back that much later than the kernel drops locks


def inherits(mode, after_query):
    """On a device that has no more than the group's limit besides the contexts."""
    def case(folder):
        with Machine(folder, devices=str(GIB + 3 * MIB), **MODES[mode], **SHARED) as machine:
            machine.simulated |= SLOW
            eye, victim, heir = machine.watcher(), machine.member(), machine.member()
            victim.do("alloc=700m")
            heir.do("alloc=100m")
            victim.kill()
            if after_query:  # who looks first may be another one
                expect("reserved", list(machine.reserved()), [heir.pid])
            heir.do("alloc=800m")
            expect("the device holds what the heir does", held_by_device(eye, 1), sum(machine.reserved().values()))
            ended_clean(machine)
    return case


def never_returned(folder):
    """Memory that the device keeps is no memory, whatever the ledger says."""
    with Machine(folder, devices=str(GIB + 3 * MIB), **MODES["direct"], **SHARED) as machine:
        machine.simulated |= {"SIMCUDA_RETURN_MS": "3600000"}
        machine.watcher()
        victim, heir = machine.member(), machine.member(RATION_LOG=machine.folder / "log")
        victim.do("alloc=700m")
        victim.kill()
        expect("code", heir("alloc=800m"), 2)
        ended_clean(machine)
    expect("reasons", [one["reason"] for one in of_type(read_log(machine.folder / "log"), "oom")], ["device"])


def churn(mode):
    """Processes that allocate and free as fast as they can, one killed after the other, wherever it is just then."""
    def case(folder):
        draw = random.Random(SEED)
        print(f"seed {SEED}")
        # None ends by itself: for its last check LeakSanitizer has a second process in the same memory, which outlives it.
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
            expect("who holds", sorted(held), sorted((first.pid, second.pid)))
            if mode == "direct":
                expect("reserved", held, {first.pid: 100 * MIB, second.pid: 900 * MIB})
            ended_clean(machine)
    return case


CASES = {f"mode {mode}: the others get a killed member's memory{', asked for' * asked}": inherits(mode, asked)
         for mode in MODES for asked in (False, True)}
CASES |= {f"mode {mode}: killed in the middle": churn(mode) for mode in MODES}
main(CASES | {"memory that the device keeps": never_returned})
