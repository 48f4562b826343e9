#!/usr/bin/env python3
"""A pool of granules (RATION_BACKING=vmm) serves what one of slabs cannot, and looks like any other (granules.cc)."""
import collections
import json
import pathlib
import subprocess

from harness import BUILD, GIB, MIB, SANITIZED, clean_environment, expect, expect_that, main, of_type, run

SETTINGS = {"preallocated": {}, "preallocated at first": {"RATION_PREALLOCATE_AFTER": "0"},
            "grown on demand": {"RATION_PREALLOCATE": "false"}}
INVALID = 1
ANSWERS = {
    "every_second": [f"blocks: {64 * MIB // (4 * MIB)}", "cuMemAlloc: 0", "cuMemsetD8: 0", "cuMemGetAddressRange: 0", "the range: 0",
                     "every byte is its owner's: 0", "cuMemFree: 0", f"again: {INVALID}"],
    "exported": ["cuMemAlloc: 0", "all of it: 0", "a part: 0", "its bytes: 0", "descriptors: 0", f"no whole pages: {INVALID}", "cuMemAllocManaged: 0",
                 "the same memory: 0", "every byte is its owner's: 0", "cuMemFree: 0"],
    "apis": ["managed: 16", "handles: 16", "blocks: 16"],
    "busy": ["cuMemAllocManaged: 0"],
    "after_room": ["cuMemAlloc: 0", "cuMemFree: 0", "cuMemCreate: 0"],
    "lives": ["blocks: 16", "cuMemAlloc: 0"] * 3,
    "questions": ["cuPointerGetAttribute: 0", "its context: 0", f"cuMemRetainAllocationHandle: {INVALID}", f"cuMemUnmap: {INVALID}", f"cuMemSetAccess: {INVALID}",
                  "cuMemsetD8: 0", "cuCtxSynchronize: 0"],
}

STITCHES = {"every_second": [1], "exported": [1], "lives": [3]}  # at least so many blocks


def answered(case, settings):
    def one(folder):
        limit = 64 * MIB if case in ("every_second", "exported") else GIB
        done = run("granules", case, folder=folder, RATION_MODE="pool", RATION_BACKING="vmm", RATION_LIMIT=limit, **settings)
        expect("status", (done.status, done.err), (0, ""))
        expect("answers", done.out.splitlines(), ANSWERS[case])
        slabs = [record for record in done.logs["run.jsonl"] if record["t"] == "slab_alloc" and record["size"]]
        expect_that("made of granules", slabs and all(slab["backend"] == "cuMemCreate" for slab in slabs))
        blocks, end = of_type(done.logs["run.jsonl"], "alloc"), done.logs["run.jsonl"][-1]
        expect("stitched blocks in the end", end["stitched"], [sum(block.get("stitched", False) for block in blocks)])
        expect_that(f"{end['granules_peak']} granules in the end", 0 < end["granules_peak"][0] <= len(slabs))
        expect_that(f"{end['stitched']} stitched blocks", case not in STITCHES or end["stitched"] >= STITCHES[case])
    return one


def sub(folder, name):
    (made := pathlib.Path(folder) / name).mkdir()
    return made


def backing_of(done):
    """What the log's first line says of the device, and what its slabs came from."""
    device = done.logs["run.jsonl"][0]["devices"][0]
    return device["backing"], device["backing_reason"], {each["backend"] for each in done.logs["run.jsonl"] if each["t"] == "slab_alloc" and each["size"]}


def chosen(folder):
    """auto: granules where the device has them."""
    done = run("granules", "questions", folder=sub(folder, "with"), RATION_MODE="pool", RATION_LIMIT=GIB, RATION_BACKING="auto")
    expect("granules", backing_of(done), ("vmm", "granules of 2MiB, in pages of 2MiB", {"cuMemCreate"}))
    done = run("granules", "questions", folder=sub(folder, "asked"), RATION_MODE="pool", RATION_LIMIT=GIB, RATION_BACKING="slab")
    expect("slabs", backing_of(done), ("slab", "slab was asked for", {"cuMemAlloc_v2"}))
    expect("the end", [done.logs["run.jsonl"][-1][key] for key in ("granules_peak", "stitched")], [[0], [0]])


def told(_):
    """`ration env` says of each device what a pool there is made of, and why; without a driver it says nothing."""
    for settings, backing, reason in (({"RATION_LIMIT": "2GiB"}, "vmm", "granules of 2MiB, in pages of 2MiB"),
                                      ({"RATION_LIMIT": "6GiB"}, "vmm", "granules of 4MiB, in pages of 2MiB"), ({"RATION_GRANULE": "64MiB"}, "vmm", "granules of 64MiB, in pages of 2MiB"),
                                      ({"RATION_GRANULE": "1GiB", "RATION_LIMIT": "1GiB"}, "vmm", "granules of 64MiB, in pages of 2MiB"),
                                      ({"RATION_GROUP": "lab", "RATION_GROUP_LIMIT": "6GiB"}, "vmm", "granules of 4MiB, in pages of 2MiB"),
                                      ({"RATION_GROUP": "lab", "RATION_GROUP_LIMIT": "1GB"}, "vmm", "granules of 2MiB, in pages of 2MiB"),
                                      ({"RATION_BACKING": "slab"}, "slab", "slab was asked for"),
                                      ({"SIMCUDA_ATTRIBUTES": "102=0"}, "slab", "the device has no virtual memory management"),
                                      ({"RATION_LIMIT": "100000000"}, "slab", "the limit is not in whole pages of 2MiB")):
        done = subprocess.run([BUILD / "bin/ration", "env", "--json", "--sim", "2x8GiB"], env=clean_environment() | settings,
                              capture_output=True, text=True, check=True)
        devices = json.loads(done.stdout)["devices"]
        expect(f"devices, {settings}", [(one["dev"], one["backing"], one["backing_reason"]) for one in devices],
               [(0, backing, reason), (1, backing, reason)])
    if not pathlib.Path("/dev/nvidiactl").exists():
        done = subprocess.run([BUILD / "bin/ration", "env", "--json"], env=clean_environment(), capture_output=True, text=True, check=True)
        expect("without a driver", json.loads(done.stdout)["devices"], [])


def cut(folder):
    """A size of granules that cannot be is made one that can, with a line."""
    for asked, said in (("3MiB", "granules of 2MiB instead of 3145728 bytes"), ("1GiB", "granules of 64MiB instead of 1073741824 bytes"), ("4MiB", "")):
        done = run("granules", "questions", folder=sub(folder, asked), RATION_MODE="pool", RATION_GRANULE=asked, RATION_LIMIT=GIB)
        expect_that(f"the line: {done.err}", said in done.err and done.err.count("\n") == (1 if said else 0))


def without(folder):
    """A device that has none gets slabs; whoever asked for granules is told so."""
    reason = "the device has no virtual memory management"
    for backing, said in (("vmm", f"ration: backing vmm: device 0: {reason}; slabs serve it\n"), ("auto", "")):
        done = run("granules", "questions", folder=sub(folder, backing), RATION_MODE="pool", RATION_BACKING=backing, RATION_LIMIT=GIB,
                   SIMCUDA_ATTRIBUTES="102=0")
        expect(f"answers, {backing}", (done.out.splitlines(), done.err), (ANSWERS["questions"], said))
        expect(f"the log, {backing}", backing_of(done), ("slab", reason, {"cuMemAlloc_v2"}))


def reached(folder):
    """Granules are made for network cards where the device can."""
    for can in (0, 1):
        done = run("granules", "rdma", RATION_MODE="pool", RATION_BACKING="vmm", RATION_LIMIT=GIB, SIMCUDA_ATTRIBUTES=f"110={can}")
        expect(f"attribute {can}", (done.out.splitlines(), done.err), (["cuPointerGetAttribute: 0", f"capable: {can}"], ""))


FIRST_CALLS = ["cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuStreamCreate", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
               "cuStreamSynchronize", "cuMemUnmap"]


def a_first_granule_fails(folder):
    """A driver that promises granules, and a first one cannot be used."""
    for call in FIRST_CALLS:
        done = run("granules", "questions", folder=sub(folder, call), RATION_MODE="pool", RATION_BACKING="auto", RATION_LIMIT=GIB, SIMCUDA_FAIL=f"{call}@1:801,{call}@2:801")
        named = "a copy" if "Memcpy" in call or call == "cuStreamSynchronize" else call
        said = f"ration: backing auto: device 0: a first granule failed: {named} answered 801; slabs serve it\n"
        expect(f"answers, {call}", (done.out.splitlines(), done.err), (ANSWERS["questions"], said))
        expect(f"slabs, {call}", backing_of(done)[2], {"cuMemAlloc_v2"})
    done = run("granules", "questions", folder=sub(folder, "addresses"), RATION_MODE="pool", RATION_BACKING="auto", RATION_LIMIT=GIB,
               SIMCUDA_FAIL=",".join(f"cuMemAddressReserve@{time}:2" for time in (1, 2, 3)))
    expect("no addresses", (done.out.splitlines(), done.err),
           (ANSWERS["questions"], "ration: backing auto: device 0: the driver reserves no addresses; slabs serve it\n"))


def a_granule_is_tried(folder):
    """One granule is made, tried and given back, once; a small program needs one more."""
    trace = pathlib.Path(folder) / "trace"
    done = run("steps", "init", "context=0", "alloc=1m", "alloc=512k", folder=folder, RATION_MODE="pool", RATION_BACKING="auto", RATION_LIMIT=GIB,
               SIMCUDA_TRACE=trace)
    expect("status", (done.status, done.err), (0, ""))
    calls = collections.Counter(line.split("(")[0].split()[0] for line in trace.read_text().splitlines())
    expect("calls", {call: calls[call] for call in ("cuMemCreate", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease", "cuMemAlloc_v2")},
           {"cuMemCreate": 2, "cuMemSetAccess": 2, "cuMemUnmap": 2, "cuMemRelease": 1, "cuMemAlloc_v2": 0})
    expect("granules in the log", [slab["size"] for slab in done.logs["run.jsonl"] if slab["t"] == "slab_alloc" and slab["size"]], [2 * MIB])


main({f"{case}, {name}": answered(case, settings) for case in ANSWERS for name, settings in SETTINGS.items()}
     | ({} if SANITIZED else {"ration env": told})  # the probe preloads no sanitizer
     | {"a size that cannot be": cut, "auto": chosen, "a device without granules": without, "GPUDirect RDMA": reached, "a first granule fails": a_first_granule_fails,
        "a granule is tried": a_granule_is_tried})
