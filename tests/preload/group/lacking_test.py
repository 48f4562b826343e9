#!/usr/bin/env python3
"""A request for which a process's own free memory and that of a neighbour are enough together; and neighbours that
cannot answer."""
import signal
import time

from members import MIB, REFUSED, Machine, expect
from harness import GIB, main

LIMIT = GIB
CONTEXTS = 2 * MIB  # of two processes
POOL = {"RATION_MODE": "pool", "RATION_PREALLOCATE": "false"}
EVERY = {"granules": POOL | {"RATION_BACKING": "vmm"}, "slabs": POOL | {"RATION_BACKING": "slab"}, "mode async": {"RATION_MODE": "async"},
         "mode direct": {"RATION_MODE": "direct"}}
BACKINGS = {"granules": {"RATION_BACKING": "vmm"}, "slabs": {"RATION_BACKING": "slab"}}
SCOPES = {"a group": {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": str(LIMIT)}, "a container": {"RATION_CONTAINER_LIMIT": str(LIMIT)}, "a full device": {}}


def own_and_others(backing, scope, waits):
    """Nothing is in use; either holds half, and one asks for more than half."""
    def case(folder):
        settings = POOL | BACKINGS[backing] | SCOPES[scope] | ({"RATION_WAIT": "5s"} if waits else {})
        devices = LIMIT + CONTEXTS if scope == "a full device" else 4 * GIB
        with Machine(folder, devices=str(devices), **settings) as machine:
            first, second = machine.member(), machine.member()
            first.do("alloc=500m free=0 synchronize")
            second.do("alloc=500m free=0 synchronize")
            expect(f"more than half, {machine.ps()['processes']}", second("alloc=600m"), 0)
            second.do("free=1 synchronize")
            expect("and in the other process", first("alloc=900m"), 0)
            first.do("use=1 free=1 synchronize")
            expect("and in parts", [second("alloc=300m") for _ in range(3)], [0, 0, 0])
            second.do("use=2 use=3 use=4")
            expect("not more than there is", second("alloc=300m"), REFUSED)
    return case


def physical(backing, device):
    """The same on a full device, of memory that no pool allocates, whichever device is current."""
    def case(folder):
        with Machine(folder, devices=",".join([str(LIMIT + CONTEXTS)] * 2), **POOL, **BACKINGS[backing]) as machine:
            machine.member(device).do("alloc=500m free=0 synchronize")
            newcomer = machine.start("newcomer", f"{'elsewhere_' * device}physical_beside_own", "600")
            expect(f"600 MiB {newcomer.err()}", newcomer.read(), "0")
    return case


def counted(mode):
    """The same of managed memory that no limit counts."""
    def case(folder):
        with Machine(folder, devices=str(LIMIT + CONTEXTS), RATION_MANAGED="count", **EVERY[mode]) as machine:
            first, second = machine.member(), machine.member()
            first.do("alloc=500m free=0 synchronize")
            second.do("alloc=500m free=0 synchronize managed=600m managed=200m")
            expect("not more than there is", second("managed=300m"), REFUSED)
    return case


def small(mode):
    """Pools that may hold little give it, too."""
    def case(folder):
        with Machine(folder, devices=str(128 * MIB + 3 * CONTEXTS // 2), RATION_LIMIT="60MiB", **EVERY[mode]) as machine:
            holders, asking = [machine.member(), machine.member()], machine.member()
            for holder in holders:
                holder.do("alloc=56m free=0 synchronize")
            expect("what two hold and do not use", asking("alloc=56m"), 0)
    return case


def stopped_neighbour(folder):
    """It gives nothing, and nobody waits for it: a running neighbour's memory comes, and what it alone could give is refused, each time alike."""
    with Machine(folder, **POOL, **BACKINGS["granules"], **SCOPES["a group"]) as machine:
        stopped, running, asking = machine.member(), machine.member(), machine.member()
        stopped.do("alloc=400m free=0 synchronize")
        running.do("alloc=300m free=0 synchronize")
        stopped.process.send_signal(signal.SIGSTOP)
        wait_until_stopped(stopped.pid)
        for _ in range(3):
            expect("what only the stopped one could give", asking("alloc=800m"), REFUSED)
        expect("what the running one has", asking("alloc=600m"), 0)
        stopped.process.send_signal(signal.SIGCONT)
        asking.do("free=3 synchronize")
        expect("once it runs again", any(asking("alloc=1000m") == 0 for _ in range(30)), True)


def wait_until_stopped(pid):
    for _ in range(10000):
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            if stat.read().rpartition(")")[2].split()[0] == "T":
                return
        time.sleep(0.001)


main({f"{scope}, {backing}{', waiting' if waits else ''}": own_and_others(backing, scope, waits)
      for scope in SCOPES for backing in BACKINGS for waits in (False, True)} |
     {f"physical memory of device {device}, {backing}": physical(backing, device) for backing in BACKINGS for device in (0, 1)} |
     {f"managed memory that is counted, {mode}": counted(mode) for mode in EVERY} |
     {f"small pools, {mode}": small(mode) for mode in EVERY} |
     {"a neighbour that is stopped": stopped_neighbour})
