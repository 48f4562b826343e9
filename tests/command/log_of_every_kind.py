"""Logs that a test writes itself: two devices, handles that equal addresses, a free that was lost, names to quote."""
import json

META = {"t": "meta", "schema": "ration.events/1", "ver": "0.1.0", "pid": 7, "exe": "/opt/train", "start_unix_ns": 86_399_999_999_000,
        "devices": [{"dev": number, "uuid": f"GPU-{number}", "name": "GPU", "total": 1 << 30, "limit": 1 << 20, "limit_asked": True}
                    for number in (0, 1)]}


def block(addr, size, *, kind="device", dev=0, src="driver", **more):
    return {"t": "alloc", "tid": 7, "dev": dev, "ctx": 1, "stream": 0, "api": "cuMemAlloc_v2", "via": "driver", "kind": kind,
            "addr": hex(addr), "size": size, "req": size - 1, "src": src, "dur": 1} | more


def end_of(addr, *, kind="device", dev=0, **more):
    return {"t": "free", "tid": 8, "dev": dev, "ctx": 1, "stream": 0, "api": "cuMemFree_v2", "kind": kind, "addr": hex(addr),
            "size": 0, "src": "driver"} | more


END = {"t": "end", "status": 0, "peak": [], "reserved_peak": [], "live": [], "allocs": 0, "frees": 0, "ooms": 0, "waits": 0, "failed_allocs": 0,
       "failed_frees": 0, "dropped": 0}


def stack(number, *places):
    """A stack, outermost place first: (function, file, line)."""
    records, parent = [], 0
    for depth, (function, file, line) in enumerate(places):
        own = number * 10 + depth
        records += [{"t": "frame", "id": own, "mod": 0, "off": 0, "fn": function, "file": file, "line": line},
                    {"t": "stack", "id": own, "frame": own, "parent": parent}]
        parent = own
    return records


def write(path, *records):
    lines = [META] + [record | {"ts": 1000 * number, "seq": number} for number, record in enumerate(records, 1)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


SMALL_STACK, LARGE_STACK = 11, 22  # ids of their innermost places
RECORDS = [
    *stack(1, ("main", "/opt/train.py", 3), ("small;one\nof, \"two\"", "/opt/train.py", 9)),
    *stack(2, ("main", "/opt/train.py", 3), ("load", "/opt/train.py", 20), ("large", "/opt/model.py", 5)),
    {"t": "slab_alloc", "tid": 7, "dev": 0, "ctx": 1, "slab": 1, "addr": "0x100000", "size": 65536, "backend": "cuMemAlloc_v2",
     "why": "grow", "dur": 1},
    block(0x100200, 512, src="pool", slab=1, stack=SMALL_STACK),
    block(0x100800, 1024, src="pool", slab=1, stack=LARGE_STACK),
    block(0x20, 4096, kind="vmm"),            # a handle,
    block(0x20, 8192, kind="array"),          # and another that is the same number
    block(0x20, 100, kind="host", charged=False),
    block(0x900000, 2048, dev=1, stack=LARGE_STACK),
    end_of(0x20, kind="array"),
    end_of(0x100200),
    {"t": "dropped", "count": 1},             # the end of 0x100800
    block(0x100800, 2048, src="pool", slab=1, stack=SMALL_STACK),
    {"t": "oom", "tid": 7, "dev": 1, "api": "cuMemAlloc_v2", "req": 1 << 30, "reason": "group", "used": 2048, "limit": 1 << 20,
     "device_free": 4096, "largest_free": 512, "reserved": 2048, "quarantined": 0, "capturing": False, "group": "a,\"b\"",
     "group_limit": 1, "group_reserved": 2, "group_claimed": 3,
     "holders": [{"pid": 7, "exe": "/opt/train", "reserved": 1, "used": 2, "guarantee": 2}]},
    end_of(0x777000),                         # of a block whose `alloc` was lost
    {"t": "sample", "tid": 7, "dev": 1, "api": "cuMemAllocAsync", "pool_reserved": 32768},
    {"t": "wait", "tid": 7, "dev": 0, "api": "cuMemFree_v2", "how": "event", "blocks": 1, "bytes": 512, "result": 0, "dur": 5},
    {"t": "trim", "tid": 7, "dev": 0, "api": "idle", "slabs": 1, "granules": 0, "bytes": 1},
]
