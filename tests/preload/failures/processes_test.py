#!/usr/bin/env python3
"""Failures of several processes and several devices: device selection, simultaneous starts, one process after another."""
import itertools
import json
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[1] / "group")]
from harness import GIB, MIB, expect, expect_that, main, run  # noqa: E402
from members import MODES, REFUSED, Machine, ended_clean  # noqa: E402

LIMITS = {0: 400 * MIB, 1: 300 * MIB, 2: 200 * MIB}  # by ordinal, in the program's order
SHARED = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB"}
WAYS = ("direct", "pool")  # preallocated
BLOCK = 99  # MiB: N blocks fit a limit of N times 100 MiB, also beside a pool's own overhead
CROWD = 150


def blocks_by_device(folder, visible, count, limit, mode="direct"):
    """The number of blocks that a program gets from each visible device, the last device first."""
    took = []
    for device in reversed(range(count)):
        done = run("steps", "init", f"context={device}", *[f"alloc={BLOCK}m"] * 6, CUDA_VISIBLE_DEVICES=visible,
                   SIMCUDA_DEVICES="3x2GiB", SIMCUDA_MACHINE=folder, RATION_LIMIT=limit, RATION_MODE=mode)
        codes = [line.rsplit(": ", 1)[1] for line in done.out.splitlines()]
        expect(f"{visible!r}: start", (codes[:2], done.err), (["0", "0"], ""))
        took.append(codes.count("0") - 2)
        expect(f"{visible!r}: the others", codes[2 + took[-1]:], ["2"] * (6 - took[-1]))
    return took[::-1]


def choices(mode):
    def case(folder):
        for count in (1, 2, 3):
            limit = ",".join(f"{device}={LIMITS[device]}" for device in range(count))
            for chosen in itertools.permutations(range(3), count):
                visible = ",".join(map(str, chosen))
                expect(visible, blocks_by_device(folder, visible, count, limit, mode), [4, 3, 2][:count])
    return case


def uuids(folder):
    done = run("monitor", "start", "name=0", "name=1", "name=2", SIMCUDA_DEVICES="3x2GiB", SIMCUDA_MACHINE=folder, preload=None)
    return [json.loads(line)["uuid"] for line in done.out.splitlines()]


def by_uuid(folder):
    """A limit by UUID follows its device; one by number follows the number, also where devices are chosen by UUID."""
    names = uuids(folder)
    for chosen in ((0, 1, 2), (2, 0, 1), (2, 1), (1,)):
        limit = ",".join(f"{names[device]}={LIMITS[device]}" for device in sorted(chosen))
        room = [[4, 3, 2][device] for device in chosen]
        for visible in (",".join(map(str, chosen)), ",".join(names[device] for device in chosen)):
            expect(visible, blocks_by_device(folder, visible, len(chosen), limit), room)
    expect("by UUID", blocks_by_device(folder, f"{names[2]},{names[0]}", 2, "0=400MiB,1=300MiB"), [4, 3])


def nvml_first(folder):
    """NVML is queried before CUDA, and only the second device is visible to CUDA."""
    for mode in WAYS:
        for visible, allowed in (("1", 3), ("2,1", 3), ("1,0", 3)):
            limit = "0=300MiB,1=200MiB"[:None if "," in visible else 8]
            ops = ["start", "index=0", "index=1", "index=2", "init", "context=0"]
            run_ = [run("monitor", *ops, *[f"alloc={BLOCK}"] * count, "memory", CUDA_VISIBLE_DEVICES=visible,
                        SIMCUDA_DEVICES="3x2GiB", RATION_LIMIT=limit, RATION_MODE=mode)
                    for count in (allowed, allowed + 1)]
            expect(f"{visible}: within, beyond", [(one.status, one.err) for one in run_], [(0, ""), (1, f"alloc={BLOCK} failed\n")])
            reported = json.loads(run_[0].out.splitlines()[-1])
            expect(f"{visible}: total", reported["total"], 300 * MIB)
            expect_that(f"{visible}: free {reported['free']}", reported["free"] <= 3 * MIB)


def sixteen(folder):
    limit = ",".join(f"{device}={100 * (1 + device % 3)}MiB" for device in range(16))
    ops = [op for device in range(16) for op in (f"context={device}", *[f"alloc={BLOCK}m"] * 4, "query")]
    for mode in WAYS:
        done = run("steps", "init", *ops, SIMCUDA_DEVICES="16x1GiB", SIMCUDA_CONTEXT_BYTES="1MiB", RATION_LIMIT=limit, RATION_MODE=mode)
        codes = [int(line.rsplit(": ", 1)[1]) for line in done.out.splitlines()[1:]]
        for device in range(16):
            fit = 1 + device % 3
            expect(f"device {device}", codes[device * 6:device * 6 + 6], [0] * (fit + 1) + [REFUSED] * (4 - fit) + [0])


def one_after_another(mode):
    """The second process sees the remaining memory; once the first has ended, all of it."""
    def case(folder):
        with Machine(folder, **MODES[mode], **SHARED, RATION_LIMIT="1GiB") as machine:
            first = machine.member()
            first.do("alloc=600m")
            for _ in range(5):
                second = machine.member()
                free, total = second.memory()
                expect("total", total, GIB)
                expect_that(f"free {free}", 400 * MIB <= free <= GIB - 600 * MIB)
                second.do("alloc=400m")
                expect("beyond", second("alloc=40m"), REFUSED)
                expect("status", second.end(), 0)
            expect("status", first.end(), 0)
            third = machine.member()
            expect("free at last", third.memory(), (GIB, GIB))
            third.do("alloc=1000m")
            ended_clean(machine)
    return case


def dead_and_asked(folder):
    """A killed process's memory is free for a process that only queries; no process joins or is refused in between."""
    with Machine(folder, **MODES["direct"], **SHARED) as machine:
        heir, victim = machine.member(), machine.member()
        victim.do("alloc=700m")
        expect("before", heir.memory()[0], GIB - 700 * MIB)
        victim.kill()
        expect("after", heir.memory()[0], GIB)
        ended_clean(machine)


def killed_then_refused(folder):
    """A death, a refusal, more deaths: living processes keep their memory, and sums never wrap."""
    with Machine(folder, **MODES["direct"], **SHARED) as machine:
        keeper, heir = machine.member(), machine.member()
        keeper.do("alloc=300m")
        for _ in range(6):
            victim = machine.member()
            victim.do("alloc=600m")
            expect("beyond", heir("alloc=200m"), REFUSED)
            expect_that("a refusal ends no process", all(one.process.poll() is None for one in (keeper, heir, victim)))
            victim.kill()
            heir.do("alloc=700m")
            expect("free", keeper.memory()[0], GIB - 1000 * MIB)
            expect("held", machine.reserved(), {keeper.pid: 300 * MIB, heir.pid: 700 * MIB})
            heir.kill()
            heir = machine.member()
        keeper.do("alloc=700m free=0 free=1 alloc=1000m")
        ended_clean(machine)


def many_at_once(folder):
    """No process waits for another one's start, and all of them start."""
    with Machine(folder, **MODES["direct"], **SHARED) as machine:
        members = [machine.start() for _ in range(CROWD)]
        for member in members:
            member.send("init\ncontext=0\nalloc=2m\nfree=0\nalloc=2m")
        for number, member in enumerate(members):
            said = [member.read() for _ in range(5)]
            expect(f"member {number}: {member.err()}", said, ["init: 0", "context=0: 0", "alloc=2m: 0", "free=0: 0", "alloc=2m: 0"])
        expect("together", sum(machine.reserved().values()), CROWD * 2 * MIB)
        for member in members:
            member.kill()
        last = machine.member()
        last.do("alloc=1000m")
        ended_clean(machine)


CASES = {f"a limit holds under every choice and order of devices, {mode}": choices(mode) for mode in WAYS}
CASES |= {f"a second process sees what the first one leaves, {mode}": one_after_another(mode) for mode in MODES}
main(CASES | {
    "a limit by UUID follows its device": by_uuid,
    "a limit holds on a second device alone and after an NVML query": nvml_first,
    "each of sixteen devices has a separate limit": sixteen,
    "a killed process's memory is free for a process that only queries": dead_and_asked,
    "alternating refusals and deaths end no other process and wrap nothing": killed_then_refused,
    "many processes can start at once": many_at_once,
})
