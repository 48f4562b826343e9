#!/usr/bin/env python3
"""Each allocating function other than cuMemAlloc_v2 alone (programs/apis.cc). It obeys the limit as far as its size is
known, a free or the end of its context releases all memory, and the log agrees."""
import re

from harness import GIB, MIB, expect, expect_that, main, of_type, run

LIMIT = 512 * MIB
# Function → the MiB that one block takes of the device, and of the limit.
LIMITED = {"cuArrayCreate": 100, "cuArrayCreate_v2": 100, "cuArray3DCreate": 100, "cuArray3DCreate_v2": 100, "deep": 100,
           "cuMipmappedArrayCreate": 85, "cuMemAlloc": 100, "cuMemAllocPitch": 100, "cuMemAllocManaged": 100,
           "cuMemCreate": 100}
# If the driver cannot report an array's size, Ration charges an upper bound: a block 25 deep lies
# in tiles that are 32 deep at most.
ESTIMATED = {"deep": (100, 128), "cuArray3DCreate_v2": (100, 100), "cuMipmappedArrayCreate": (85, 85)}
NO_REQUIREMENTS = "cuArrayGetMemoryRequirements@1:801,cuMipmappedArrayGetMemoryRequirements@1:801"
# The driver's pools grow by 32 MiB, and keep freed memory until they are trimmed.
ORDERED = {"cuMemAllocAsync": "cuMemFreeAsync", "cuMemAllocAsync_ptsz": "cuMemFreeAsync_ptsz",
           "freed by cuMemFree": "cuMemFree_v2", "from the default pool": "cuMemFreeAsync",
           "from the default pool by a thread's stream": "cuMemFreeAsync_ptsz",
           "from a pool of its own": "cuMemFreeAsync", "from a pool that was set": "cuMemFreeAsync"}
KINDS = {"cuMemAllocManaged": "managed", "cuMemCreate": "vmm"}
COUNTED = {"sparse": "array", "deferred": "array", "cuMemAllocHost": "host", "cuMemAllocHost_v2": "host",
           "cuMemHostAlloc": "host", "cuMemHostRegister": "host", "cuMemHostRegister_v2": "host", "cuMemCreate on the host": "host"}
OUTLIVES = {"cuMemCreate", "cuMemCreate on the host"}
MOST = 8  # host and sparse allocations are logged but never refused
LINE = re.compile(r"^blocks=(\d+) code=(\d+) as_driver=(\d) held=(\d+) free=(\d+) narrow=(\d+),(\d+),(\d+)$", re.MULTILINE)
ENDS = {"cuArrayCreate": "cuArrayDestroy", "cuArray3DCreate": "cuArrayDestroy",
        "cuMipmappedArrayCreate": "cuMipmappedArrayDestroy", "cuMemAlloc": "cuMemFree", "cuMemAllocPitch": "cuMemFree",
        "cuMemAllocHost": "cuMemFreeHost", "cuMemHostAlloc": "cuMemFreeHost", "cuMemHostRegister": "cuMemHostUnregister",
        "cuMemAllocManaged": "cuMemFree_v2", "cuMemCreate": "cuMemRelease"}


def lines(function, most, **settings):
    done = run("apis", function, str(most), SIMCUDA_DEVICES="16GiB", **settings)
    expect_that(f"status {done.status}, printed {done.out!r} {done.err!r}", done.status == 0 and done.err == "")
    return done, [tuple(map(int, line)) for line in LINE.findall(done.out)]


def live_of(records):
    """Charged bytes that the log leaves live; at no time more than the limit."""
    live = 0
    for record in records:
        if record["t"] in ("alloc", "free") and record.get("charged", True):
            live += record["size"] if record["t"] == "alloc" else -record["size"]
            expect_that(f"seq {record['seq']}: {live} charged", 0 <= live <= LIMIT)
    return live


def check_frees(records, function, count):
    api = next(record["api"] for record in of_type(records, "alloc"))
    frees = [record["api"] for record in of_type(records, "free")]
    end = ENDS[api.removesuffix("_v2")]
    expect("frees", frees, [end] * count + [end if function in OUTLIVES else "cuCtxDestroy_v2"] * count + [end] * count)
    expect_that(f"{api} logged for {function}", function in (api, "deep", "sparse", "deferred", "cuMemCreate on the host"))


def limited(function, mode, sizes=None, **simulated):
    def case(folder):
        takes, counts = (mib * MIB for mib in sizes or (LIMITED[function], LIMITED[function]))
        blocks = LIMIT // counts
        _, alone = lines(function, 10, preload=None)
        expect_that(f"without Ration {alone[0]}", alone[0][0] > blocks)
        done, printed = lines(function, 1000, folder=folder, RATION_LIMIT=LIMIT, RATION_MODE=mode, **simulated)
        free = LIMIT - blocks * counts
        expect("lines", printed, [(blocks, 2, 1, blocks * takes, free, free, LIMIT, LIMIT)] * 3 +
               [(0, 0, 1, 0, LIMIT, LIMIT, LIMIT, LIMIT)])
        records = done.logs["run.jsonl"]
        expect("allocs", {(a["kind"], a["size"]) for a in of_type(records, "alloc")},
               {(KINDS.get(function, "device" if function.startswith("cuMemAlloc") else "array"), counts)})
        expect("ooms", [(o["reason"], o["used"]) for o in of_type(records, "oom")], [("limit", blocks * counts)] * 3)
        expect("live at the end", live_of(records), 0)
        check_frees(records, function, blocks)
    return case


def ordered(function, mode):
    """100 MiB take 128 of the device; freed memory stays in the pool until another allocation needs it."""
    def case(folder):
        blocks, step = 4, 128 * MIB
        _, alone = lines(function, 10, preload=None)
        expect_that(f"without Ration {alone[0]}", alone[0][0] > blocks)
        done, printed = lines(function, 1000, folder=folder, RATION_LIMIT=LIMIT, RATION_MODE=mode)
        expect("lines", [line[:5] for line in printed], [(blocks, 2, 1, blocks * step, 0)] * 3 + [(0, 0, 1, 0, LIMIT)])
        records = done.logs["run.jsonl"]
        expect("allocs", {(a["kind"], a["src"], a["size"]) for a in of_type(records, "alloc")},
               {("pool", "pool", 100 * MIB)})
        expect("frees", {record["api"] for record in of_type(records, "free")}, {ORDERED[function]})
        expect("ooms", [(o["reason"], o["reserved"]) for o in of_type(records, "oom")], [("limit", blocks * step)] * 3)
        reserved = [record["pool_reserved"] for record in of_type(records, "sample")]
        expect("reserved at most, and at the end", (max(reserved), reserved[-1]), (LIMIT, 0))
        expect("reserved_peak", of_type(records, "end")[0]["reserved_peak"], [LIMIT])
        expect("live at the end", live_of(records), 0)
    return case


def counted(function, mode):
    def case(folder):
        done, printed = lines(function, MOST, folder=folder, RATION_LIMIT=LIMIT, RATION_MODE=mode)
        expect("lines", printed, [(MOST, 0, 1, 0, LIMIT, LIMIT, LIMIT, LIMIT)] * 3 + [(0, 0, 1, 0, LIMIT, LIMIT, LIMIT, LIMIT)])
        records = done.logs["run.jsonl"]
        host = COUNTED[function] == "host"
        expect("allocs", [(a["kind"], a["size"], a.get("charged", True)) for a in of_type(records, "alloc")],
               [("host", 100 * MIB, False) if host else ("array", 0, True)] * MOST * 3)
        expect("ooms", of_type(records, "oom"), [])
        expect("live at the end", live_of(records), 0)
        check_frees(records, function, MOST)
    return case


def unlimited_total(folder):
    """A size that does not fit 32 bits is reported as the largest that does."""
    _, printed = lines("sparse", 1, RATION_LIMIT="8GiB")
    expect("narrow", printed[0][4:], (8 * GIB, *[(1 << 32) - 1] * 3))


main({f"{function}, {mode}": case(function, mode) for mode in ("direct", "pool", "async")
      for functions, case in ((LIMITED, limited), (COUNTED, counted), (ORDERED, ordered)) for function in functions}
     | {f"{function}, estimated": limited(function, "direct", sizes, SIMCUDA_FAIL=NO_REQUIREMENTS)
        for function, sizes in ESTIMATED.items()}
     | {"sizes that 32 bits do not hold": unlimited_total})
