#!/usr/bin/env python3
"""A log of a program that never ran, as the library writes it: what a page shows of it is known.

made_log.py OUT [EVENTS]     a log of so many records (5,000,000), to measure `ration report -o` with
"""
import json
import random
import sys

MIB, GIB = 1 << 20, 1 << 30
BASE = 0x7F0000000000
PYTHON_FRAMES = (("main", "/x/train.py", 40), ("load", "/x/loader.py", 7), ("step", "/x/model.py", 88), ("leak", "/x/leaky.py", 12))


class MadeLog:
    """Writes records with consecutive numbers and growing times."""

    def __init__(self, file, pid=100, exe="/usr/bin/train", start_unix_ns=1_700_000_000_000_000_000, limit=8 * GIB, devices=1, group_limit=0, limit_asked=True):
        self.file, self.seq, self.ts, self.pid = file, 0, 0, pid
        self.meta = {"t": "meta", "schema": "ration.events/1", "ver": "0.1.0", "pid": pid, "ppid": 1, "host": "vm", "exe": exe,
                     "tree": "1-1", "start_unix_ns": start_unix_ns, "clock": "monotonic", "driver": 13050, "mode": "pool",
                     "devices": [{"dev": i, "uuid": f"GPU-{i}", "name": "simcuda GPU", "total": 16 * GIB, "limit": limit, "limit_asked": limit_asked,
                                  **({"group_limit": group_limit} if group_limit else {})}
                                 for i in range(devices)],
                     "settings": {}, "foreign": [], "env": {}, "argv": [exe]}
        self.file.write(json.dumps(self.meta) + "\n")

    def write(self, of_type, step=1_000, **keys):
        self.seq += 1
        self.ts += step
        self.file.write(json.dumps({"t": of_type, **keys, "ts": self.ts, "seq": self.seq}, separators=(",", ":")) + "\n")
        return self.seq

    def slab(self, number, address, size, dev=0):
        return self.write("slab_alloc", tid=self.pid, dev=dev, ctx=1, slab=number, addr=hex(address), size=size, backend="cuMemAlloc_v2",
                          why="grow", dur=1000)

    def python_stacks(self, frames=PYTHON_FRAMES):
        """Stack i is frame i called by frame 1, which is stack 1."""
        for number, (function, file, line) in enumerate(frames, 1):
            self.write("frame", id=number, mod=0, off=0, fn=function, file=file, line=line)
            self.write("stack", id=number, frame=number, parent=0 if number == 1 else 1)

    def alloc(self, address, size, slab=1, stack=0, step=1_000, dev=0, api="cuMemAlloc_v2"):
        extra = {"stack": stack} if stack else {}
        return self.write("alloc", step, tid=self.pid, dev=dev, ctx=1, stream=0, api=api, via="driver", kind="device", addr=hex(address),
                          size=size, req=size, src="pool" if slab else "driver", **({"slab": slab} if slab else {}), dur=400, **extra)

    def free(self, address, size, step=1_000, dev=0):
        return self.write("free", step, tid=self.pid, dev=dev, ctx=1, stream=0, api="cuMemFree_v2", kind="device", addr=hex(address),
                          size=size, src="pool")

    def refuse(self, req, used, reason="limit", step=1_000, dev=0, limit=8 * GIB, **more):
        return self.write("oom", step, tid=self.pid, dev=dev, api="cuMemAlloc_v2", req=req, reason=reason, used=used, limit=limit,
                          device_free=4 * GIB, largest_free=limit - used, reserved=limit, quarantined=0, capturing=False, **more)

    def end(self):
        return self.write("end", status=0, peak=[], reserved_peak=[], live=[], allocs=0, frees=0, ooms=0, waits=0, failed_allocs=0,
                          failed_frees=0, dropped=0)


def training(log, rounds=40, seed=1):
    """Rounds of a step that frees what it took; a buffer of the loader stays for long, and a leak grows. Refused twice."""
    chance = random.Random(seed)
    log.slab(1, BASE, 2 * GIB)
    log.slab(2, BASE + 4 * GIB, 1 * GIB)
    log.python_stacks()
    log.alloc(BASE, 512 * MIB, stack=2, step=1_000_000)
    used, at, leaked = 512 * MIB, 512 * MIB, 0
    for turn in range(rounds):
        taken = []
        for _ in range(chance.randrange(4, 20)):
            size = chance.randrange(1, 24) * MIB
            if at + size > 2 * GIB:
                break
            log.alloc(BASE + at, size, stack=3, step=2_000_000)
            taken.append((BASE + at, size))
            at += size
            used += size
        if turn % 8 == 7:
            log.alloc(BASE + 4 * GIB + leaked, 16 * MIB, slab=2, stack=4)
            leaked += 16 * MIB
            used += 16 * MIB
        if turn in (20, 30):
            log.refuse(8 * GIB - used + turn * MIB, used)
        for address, size in reversed(taken):
            log.free(address, size, step=1_500_000)
            at -= size
            used -= size
    log.free(BASE, 512 * MIB)
    log.end()


def many(log, events):
    """Blocks of all sizes in a slab of 64 GiB, at most 200,000 at once, from 300 stacks; refused every 20,000th time."""
    chance = random.Random(2)
    log.slab(1, BASE, 64 * GIB)
    log.python_stacks([("main", "/x/main.py", 1), *((f"layer_{i}", f"/x/part_{i % 20}.py", i) for i in range(300))])
    live, free_places, used, new = [], [], 0, 0
    while log.seq < events - 1:
        if log.seq % 20_000 == 0:
            log.refuse(GIB, used)
        elif len(live) > 200_000 or (live and chance.random() < 0.47):
            place = chance.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            number, size = live.pop()
            free_places.append(number)
            used -= size
            log.free(BASE + number * 320 * 1024, size)
        else:
            if free_places:
                number = free_places.pop()
            else:
                number, new = new, new + 1
            size = 512 * chance.randrange(1, 600)
            live.append((number, size))
            used += size
            log.alloc(BASE + number * 320 * 1024, size, stack=chance.randrange(2, 302))
    log.end()


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        many(MadeLog(out), int(sys.argv[2]) if len(sys.argv) > 2 else 5_000_000)
