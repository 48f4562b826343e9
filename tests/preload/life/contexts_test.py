#!/usr/bin/env python3
"""Contexts that are made and destroyed with blocks in them, and frees from any place at any time: the codes are the same as
without Ration, and the log's sums are right. The ops are those of steps.cc."""
import pathlib

from harness import GIB, expect, expect_that, main, run
from log_books import added_up

MACHINE = {"SIMCUDA_DEVICES": "2x8GiB"}
LIMIT = {0: GIB, 1: GIB}
TWO = "alloc=100m alloc=3k"  # the first one makes the pool preallocate
BLOCKS = "alloc=3k alloc=100m alloc=3k alloc=1m"  # the same, after a small slab

# name: (ops, {the call: blocks that it ended, 0 for slabs only}, blocks that stay live[, settings])
SCENARIOS = {
    "destroyed": (f"context=0 {TWO} destroy=0 alloc=1m context=0 free=0 free=1 {TWO} use=3 free=3",
                  {"cuCtxDestroy_v2": 2, "cuMemFree_v2": 1}, 1),
    "destroyed by the plain call": (f"context=0 {BLOCKS} free=1 destroy_v1=0 free=0",
                                    {"cuMemFree_v2": 1, "cuCtxDestroy": 3}, 0),
    "destroyed twice": (f"context=0 {TWO} destroy=0 destroy=0 context=0 destroy=0 {TWO} use=2",
                        {"cuCtxDestroy_v2": 2}, 2),
    "destroyed by another thread": (f"context=0 {TWO} other:destroy=0 alloc=1m free=0 use=0 context=0 {TWO}",
                                    {"cuCtxDestroy_v2": 2}, 2),
    "destroyed while work and freed blocks are pending": (
        f"context=0 stream {TWO} alloc=1m work=0 work=2 free=0 destroy=0 context=0 {TWO} free=3 free=4",
        {"cuMemFree_v2": 3, "cuCtxDestroy_v2": 2}, 0),
    "detached": (f"context=0 attach {TWO} detach=0 use=0 alloc=1m detach=1 alloc=1m", {"cuCtxDetach": 3}, 0),
    "the last of several releases": (f"retain=0 retain=0 {TWO} release=0 use=0 alloc=1m release=0 use=0 alloc=1m release=0",
                                     {"cuDevicePrimaryCtxRelease_v2": 3}, 0),
    "the last of several plain releases": (f"retain=0 retain=0 {BLOCKS} release_v1=0 use=0 release_v1=0 use=0 release_v1=0",
                                           {"cuDevicePrimaryCtxRelease": 4}, 0),
    "used after the last release": (f"retain=0 {TWO} release=0 retain=0 free=0 free=1 {TWO} use=2 free=2 free=2",
                                    {"cuDevicePrimaryCtxRelease_v2": 2, "cuMemFree_v2": 1}, 1),
    "reset": (f"retain=0 {TWO} reset=0 alloc=1m free=0 use=0 release=0", {"cuDevicePrimaryCtxReset_v2": 2}, 0),
    "reset by the plain call": (f"retain=0 {BLOCKS} free=1 reset_v1=0 alloc=1m free=0",
                                {"cuMemFree_v2": 1, "cuDevicePrimaryCtxReset": 3}, 0),
    "used after reset": (f"retain=0 {TWO} reset=0 retain=0 free=0 {TWO} use=2 free=2 reset=0 reset=0",
                         {"cuDevicePrimaryCtxReset_v2": 3, "cuMemFree_v2": 1}, 0),
    "one of two is destroyed": (f"context=0 alloc=20m context=0 alloc=10m alloc=1m destroy=0 use=1 alloc=3m free=1 use=3 current=0",
                        {"cuCtxDestroy_v2": 1, "cuMemFree_v2": 1}, 2),
    "one of three is destroyed, and another takes its room": (
        "context=0 alloc=100m context=0 alloc=10m context=0 alloc=20m destroy=0 alloc=800m use=1 use=2 use=3 free=1 free=2",
        {"cuCtxDestroy_v2": 1, "cuMemFree_v2": 2}, 1, {"RATION_PREALLOCATE": "false"}),
    "a created context beside the primary one": (f"retain=0 alloc=20m context=0 alloc=10m reset=0 use=1 destroy=1 retain=0 {TWO}",
                                         {"cuDevicePrimaryCtxReset_v2": 1, "cuCtxDestroy_v2": 1}, 2),
    "one context on each device": (f"context=0 {TWO} context=1 {TWO} destroy=0 use=2 free=2 free=0 {TWO}",
                            {"cuCtxDestroy_v2": 2, "cuMemFree_v2": 1}, 3),
    "freed from another thread": (f"context=0 {TWO} other:current=0+free=0+free=0+use=1 free=0 use=1",
                                  {"cuMemFree_v2": 1}, 1),
    "freed from another context": (f"context=0 {TWO} context=0 free=0 free=0 current=0 use=1", {"cuMemFree_v2": 1}, 1),
    "freed from another device's context": (f"context=0 {TWO} context=1 free=0 free=0 current=0 use=1",
                                            {"cuMemFree_v2": 1}, 1),
    "freed with no context": (f"context=0 {TWO} current=none free=0 other:free=1+free_null+free=1 current=0 use=0 use=1",
                              {}, 2),
    "freed with a dead context current": (f"context=0 {TWO} context=0 other:destroy=1 free=0 free=1 current=0 use=0 free=0",
                                          {"cuMemFree_v2": 1}, 1),
    "a dead context is current during a free of null": (
        "context=0 context=0 other:destroy=1 alloc=1m free_null current=0 alloc=600m free=1 alloc=600m free=2 alloc=600m use=3",
        {"cuMemFree_v2": 2}, 1),
    "freed at exit": (f"context=0 {TWO} at_exit:free=0+free=0+alloc=1m+free=2", {"cuMemFree_v2": 2}, 1),
    "freed by a static destructor": (f"context=0 {TWO} destructor:free=0+free=0+alloc=100m+use=2+free=2",
                                     {"cuMemFree_v2": 2}, 1),
    "freed at exit after the context was destroyed": (f"context=0 {TWO} at_exit:destroy=0+free=0 destructor:free=1+context=0+free=1",
                                        {"cuCtxDestroy_v2": 2}, 0),
    "released at exit": (f"retain=0 {TWO} at_exit:release=0 destructor:free=0+retain=0+alloc=100m",
                         {"cuDevicePrimaryCtxRelease_v2": 2}, 1),
    "a forked child frees nothing of its parent's": (
        f"context=0 {TWO} child:free=0+free=1+free=1+alloc=1m+query+use=0+destroy=0 use=0 use=1 free=0 alloc=200m",
        {"cuMemFree_v2": 1}, 2),
    "a forked child and its parent's frees": (f"context=0 {TWO} free=0 child:free_null+free=0+free=1+init free=0 use=1 free=1",
                                              {"cuMemFree_v2": 2}, 0),
    "a forked child with a driver of its own": (f"child:init+context=0+alloc=100m+alloc=3k+use=0+free=0+free=0 init context=0 {TWO} free=1",
                                  {"cuMemFree_v2": 1}, 1),
    "blocks of a green context belong to the primary one": (
        f"green=0 {TWO} retain=0 use=0 free=0 use=1 current=0 end_green=0 current=1 use=1 alloc=1m release=0 use=1 use=2",
        {"cuMemFree_v2": 1, "cuDevicePrimaryCtxRelease_v2": 2}, 0),
    "freed in a green context, and in its stream": (
        f"retain=0 {TWO} green=0 stream work=0 free=0 free=0 alloc=900m free_async=1 current=0 use=2 free=2 reset=0 alloc=1m",
        {"cuMemFree_v2": 2, "cuMemFreeAsync": 1, "cuDevicePrimaryCtxReset_v2": 0}, 0),
    "the end of a green context ends its primary one": (f"green=0 {TWO} end_green=0 use=0 alloc=1m retain=0 {TWO} use=4 free=4",
                                                                {"cuGreenCtxDestroy": 2, "cuMemFree_v2": 1}, 1),
    "null frees": (f"context=0 free_null {TWO} free_null free=0 free_null current=none free_null", {"cuMemFree_v2": 1}, 1),
}


def scenario(mode, ops, ended, left, settings=None):
    words = ops.split() if ops.startswith("child:init") else ["init", *ops.split()]

    def case(folder):
        plain = run("steps", *words, preload=None, **MACHINE)
        expect_that(f"without Ration: {plain.status} {plain.out} {plain.err}", plain.status == 0 and plain.err == "")
        done = run("steps", *words, folder=folder, RATION_LIMIT="1GiB", RATION_MODE=mode, **MACHINE | (settings or {}))
        expect("codes", done.out.splitlines(), plain.out.splitlines())
        expect("status, stderr", (done.status, done.err), (0, ""))
        for name in sorted(done.logs):
            added_up(done.logs[name], LIMIT)
        books = added_up(done.logs["run.jsonl"], LIMIT)
        expect("ended by", dict(books.ended), {api: count for api, count in ended.items() if count})
        expect("live at the end", len(books.live), left)
        takers = {api for api in ended if not api.startswith("cuMem")}
        expect("slabs ended by", set(books.slabs_ended) - {"cuMemAlloc_v2"}, takers if mode == "pool" else set())
        gone = {record["ctx"] for record in done.logs["run.jsonl"] if record.get("api") in takers}
        held = {record["ctx"] for record in [*books.live.values(), *books.slabs.values()]}
        expect("held by destroyed contexts", gone & held, set())
    return case


def race(mode, **settings):
    """Contexts that are destroyed while threads allocate and free in them."""
    def case(folder):
        log = pathlib.Path(folder) / "run.jsonl"
        done = run("ends_race", str(log), "40", folder=folder, RATION_MODE=mode, RATION_LIMIT="256MiB",
                   SIMCUDA_CONTEXT_BYTES="0", **settings)
        expect_that(f"{done.status} {done.out} {done.err}", done.status == 0 and done.err == "")
        books = added_up(done.logs["run.jsonl"], {0: GIB // 4})
        expect("live at the end", len(books.live), 0)
        expect_that(f"blocks that ended with a context: {books.ended}", books.ended["cuCtxDestroy_v2"] > 40)
    return case


def returned(symbol, failures, **settings):
    """What the driver fails to take back once goes back with its context, and what it fails to twice with the next one:
    the device, and the limit, are as they were."""
    def case(_):
        for first in range(1, 8):
            fail = ",".join(f"{symbol}@{first + i}:999" for i in range(failures))
            done = run("steps", "init", *"context=0 query alloc=3k alloc=100m free=0 alloc=150m free=1".split(),
                       *"destroy=0 context=0 query alloc=3k free=3 destroy=1 context=0 query".split(),
                       SIMCUDA_FAIL=fail, **MACHINE | settings)
            free = [line.split()[0] for line in done.out.splitlines() if "free=" in line and "total=" in line]
            expect("queries", len(free), 3)
            expect(f"free at the end, {fail}", free[2], free[0])
            if failures == 1:
                expect(f"free in the second context, {fail}", free[1], free[0])
    return case


def failing_events(symbol, mode, **settings):
    """A driver whose events fail again and again is asked by synchronising from then on: what is freed serves."""
    def case(_):
        fail = ",".join(f"{symbol}@{call}:999" for call in range(1, 4000))
        done = run("steps", "init", *"context=0 alloc=30m alloc=30m free=0 free=1 alloc=62m alloc=60m free=2 alloc=60m".split(),
                   RATION_LIMIT="64MiB", RATION_MODE=mode, SIMCUDA_FAIL=fail, **MACHINE | settings)
        expect("codes", [line.rsplit(" ", 1)[1] for line in done.out.splitlines()], ["0"] * 7 + ["2", "0", "0"])
    return case


CASES = {f"{name}, {mode}": scenario(mode, *row) for name, row in SCENARIOS.items() for mode in ("direct", "pool")}
CASES |= {"a race with the destruction, direct": race("direct"), "a race with the destruction, pool": race("pool", RATION_PREALLOCATE="false")}
TAKING_BACK = {"without a limit": {}, "with a limit": {"RATION_LIMIT": "1GiB"}, "on demand": {"RATION_PREALLOCATE": "false"},
               "in a group": {"RATION_GROUP": "taking_back", "RATION_GROUP_LIMIT": "1GiB"}}
CASES |= {f"{symbol} fails {('once', 'twice')[failures - 1]}, {name}": returned(symbol, failures, **settings)
          for symbol in ("cuMemRelease", "cuMemUnmap", "cuMemMap", "cuMemSetAccess", "cuMemAddressFree")
          for failures in (1, 2) for name, settings in TAKING_BACK.items()}
CASES |= {f"{symbol} always fails, {mode}, {backing}": failing_events(symbol, mode, RATION_BACKING=backing)
          for symbol in ("cuCtxRecordEvent", "cuEventQuery", "cuEventSynchronize", "cuEventCreate")
          for mode, backing in (("pool", "slab"), ("pool", "vmm"), ("async", "auto"))}
main(CASES)
