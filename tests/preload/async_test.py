#!/usr/bin/env python3
"""Mode async: synchronous allocations from a driver memory pool (programs/async.cc)."""
from harness import GIB, MIB, expect, expect_that, main, of_type, run

MACHINE = {"SIMCUDA_DEVICES": "2x4GiB"}
STEP = 32 * MIB  # the growth step of the simulator's pools
LIMIT = 320 * MIB
OUT_OF_MEMORY, INVALID_VALUE, INVALID_CONTEXT = 2, 1, 201
OPPORTUNISTIC, INTERNAL_DEPENDENCIES, RELEASE_THRESHOLD = 2, 3, 4  # CUmemPool_attribute


def outcome(case, folder=None, err="", most=LIMIT, **settings):
    """[(name, value)] as printed, and the log."""
    done = run("async", case, folder=folder, RATION_MODE="async", **{"RATION_LIMIT": most} | MACHINE | settings)
    expect_that(f"{case}: status {done.status}, {done.err!r}", done.status == 0 and err in done.err)
    expect_that(f"{case}: {done.err!r}", bool(done.err) == bool(err))
    lines = [line.rsplit(" ", 1) for line in done.out.splitlines()]
    records = done.logs["run.jsonl"] if folder else []
    if folder:
        check_log(records, most)
    return [(name, int(value)) for name, value in lines], records


def check_log(records, most):
    live = {}
    for record in records:
        key = (record.get("dev"), record.get("addr"))
        if record["t"] == "alloc":
            expect_that(f"seq {record['seq']}: two owners", key not in live)
            live[key] = record["size"]
        elif record["t"] == "free":
            expect_that(f"seq {record['seq']}: no owner", live.pop(key, None) is not None)
        elif record["t"] == "sample":
            expect_that(f"seq {record['seq']}: {record['pool_reserved']} reserved", record["pool_reserved"] <= most)


def served(folder):
    lines, records = outcome("served", folder, most=GIB)
    seen = dict(lines)
    expect("the same bytes again", seen["held again"], seen["held"])
    expect("in whole steps", seen["held"], 2 * STEP)
    expect("driver's own", (seen["cuMemAlloc_v2"], seen["cuMemFree_v2"]), (0, 0))
    expect("pools and streams", (seen["cuMemPoolCreate"], seen["cuStreamCreate"]), (1, 1))
    expect("blocks", (seen["cuMemAllocFromPoolAsync"], seen["cuMemFreeAsync"]), (10, 5))
    expect("mode", records[0]["mode"], "async")
    expect("kinds", {(r["kind"], r["src"]) for r in of_type(records, "alloc")}, {("pool", "pool")})
    expect("slabs", of_type(records, "slab_alloc"), [])


def reserved_by_threads(folder):
    """Whatever the order in which threads find the driver's figure changed, the records add up to no more than the limit."""
    done = run("as_driver", "threads_large", str(GIB), folder=folder, RATION_MODE="async", RATION_LIMIT=GIB)
    expect("status", done.status, 0)
    records = done.logs["run.jsonl"]
    driver, pools, most = {}, 0, 0
    for record in records:
        if record["t"] == "sample":
            pools = record["pool_reserved"]
        elif record["t"] == "alloc" and record["src"] == "driver":
            driver[record["addr"]] = record["size"]
        elif record["t"] == "free":
            driver.pop(record["addr"], None)
        most = max(most, pools + sum(driver.values()))
    expect_that(f"{most} bytes reserved", most <= GIB)
    expect("the peak that is reported", records[-1]["reserved_peak"], [most])


def tiny(folder):
    """Blocks that the driver serves beside its pool take no more of the device than they are charged."""
    lines, _ = outcome("tiny", folder, most=63 * MIB)
    expect_that(f"{lines}", dict(lines)["held"] <= 63 * MIB)


def attributes(*wanted, **settings):
    """The attributes set on the pool; all others keep the driver's defaults."""
    def case(folder):
        trace = f"{folder}/trace"
        outcome("served", most=GIB, SIMCUDA_TRACE=trace, **settings)
        set_so = [words[2] for words in calls(trace) if words[0] == "cuMemPoolSetAttribute"]
        expect("attributes", set_so, [f"{RELEASE_THRESHOLD}={GIB}", *wanted])
    return case


def calls(trace):
    with open(trace, encoding="utf-8") as lines:
        return [line.split() for line in lines]


def once_more(folder):
    """If the driver is out of memory, Ration synchronises the stream and tries again before it refuses."""
    trace = f"{folder}/trace"
    lines, records = outcome("first", folder, SIMCUDA_TRACE=trace, SIMCUDA_FAIL="cuMemAllocFromPoolAsync@1:2")
    expect("blocks", dict(lines)["cuMemAllocFromPoolAsync"], 2)
    asked = [words[:2] for words in calls(trace) if words[0] in ("cuMemAllocFromPoolAsync", "cuStreamSynchronize")]
    expect("calls", asked[:4], [["cuMemAllocFromPoolAsync", "2"], ["cuStreamSynchronize", "0"],
                                ["cuMemAllocFromPoolAsync", "0"], ["cuStreamSynchronize", "0"]])
    expect("refusals", of_type(records, "oom"), [])


def another_error(folder):
    """Ration retries only for OUT_OF_MEMORY; the program gets any other code of the driver."""
    trace = f"{folder}/trace"
    done = run("steps", "init", "context=0", "alloc=1m", RATION_MODE="async", SIMCUDA_TRACE=trace,
               SIMCUDA_FAIL="cuMemAllocFromPoolAsync@1:719", **MACHINE)
    expect("codes", done.out.splitlines()[2:], ["alloc=1m: 719"])
    expect("tries", [words[0] for words in calls(trace)].count("cuMemAllocFromPoolAsync"), 1)


def not_taken_back(folder):
    """A freed block that the driver does not take back is offered to it again, and its memory is not lost."""
    trace = f"{folder}/trace"
    done = run("steps", "init", "context=0", "alloc=64m", "free=0", "alloc=64m", "free=1", "alloc=64m", RATION_MODE="async",
               RATION_LIMIT=64 * MIB, SIMCUDA_TRACE=trace, SIMCUDA_FAIL="cuMemFreeAsync@1:719", **MACHINE)
    expect("codes", done.out.splitlines()[2:], ["alloc=64m: 0", "free=0: 0", "alloc=64m: 0", "free=1: 0", "alloc=64m: 0"])
    expect("given back", [words[1] for words in calls(trace) if words[0] == "cuMemFreeAsync"], ["719", "0", "0"])


def preallocated(value, held, err="", **settings):
    def case(folder):
        lines, records = outcome("first", folder, err, RATION_ASYNC_PREALLOCATE=value, **settings)
        seen = dict(lines)
        expect("held", seen["held"], held)
        expect("total and free", (seen["total"], seen["free"]), (LIMIT, LIMIT - MIB))
        blocks = 1 + (1 if held > STEP else 0)
        if not err:
            expect("blocks", (seen["cuMemAllocFromPoolAsync"], seen["cuMemFreeAsync"]), (blocks, blocks))
        expect("printed", max(r["pool_reserved"] for r in of_type(records, "sample")), held)
    return case


def whole(**settings):
    def case(folder):
        lines, records = outcome("whole", folder, **settings)
        for turn in range(3):
            expect("filled", lines[4 * turn:4 * turn + 4],
                   [("null", 1), ("blocks", 20), ("refused", OUT_OF_MEMORY), ("free", 0)])
        expect("afterwards", lines[12:], [("free", LIMIT), ("all in one", 0), ("held", LIMIT), ("all by another API", 0),
                                          ("nothing left", OUT_OF_MEMORY), ("all in one again", 0),
                                          ("more", OUT_OF_MEMORY)])
        expect("refusals", [r["reason"] for r in of_type(records, "oom")], ["limit"] * 5)
    return case


def smaller_device(folder):
    """The device has less than the limit: the driver refuses, after all freed memory was released."""
    lines, records = outcome("whole", folder, most=4 * GIB, SIMCUDA_DEVICES="640MiB")
    fills = [value for name, value in lines if name == "blocks"]
    expect_that(f"filled {fills}", len(set(fills)) == 1 and fills[0] > 0)
    expect_that("refused by the device", "device" in {r["reason"] for r in of_type(records, "oom")})


def contexts(folder):
    lines, _ = outcome("contexts", folder)
    expect("printed", lines, [("dead", INVALID_VALUE), ("with another context", 0),
                           ("freed without a context", INVALID_CONTEXT), ("in the next one", 0),
                           ("too much", OUT_OF_MEMORY)])


def peers(_):
    lines, _ = outcome("peers")
    expect("printed", lines, [("before", 0), ("enabled", 0), ("after", 3), ("enabled twice", 704), ("the other way", 0),
                           ("enabled back", 0), ("both ways", 3), ("disabled", 0)])


def early_peers(_):
    expect("printed", outcome("early_peers")[0], [("enabled", 0), ("after", 3)])


def former_peers(_):
    expect("printed", outcome("former_peers")[0], [("enabled", 0), ("disabled", 0), ("after", 0)])


def twice(folder):
    lines, records = outcome("twice", folder, err="cannot be shared", SIMCUDA_LATENCY_US="2000")
    expect("printed", lines, [("inside", INVALID_VALUE), ("freed", 0), ("again", INVALID_VALUE),
                           ("again in stream order", INVALID_VALUE), ("range", 500), ("type", INVALID_VALUE),
                           ("shared", INVALID_VALUE), ("freed in stream order", 0), ("again", INVALID_VALUE)])
    expect("failed frees", records[-1]["failed_frees"], 4)


def no_pools(folder):
    """For a device or a driver without memory pools mode pool serves, and the log says so."""
    lines, records = outcome("served", folder, "mode pool is used instead", most=GIB, SIMCUDA_ATTRIBUTES="115=0")
    expect("pools of the driver's", dict(lines)["cuMemPoolCreate"], 0)
    expect("mode", (records[0]["mode"], {device["mode"] for device in records[0]["devices"]}), ("pool", {"pool"}))
    expect_that("slabs", of_type(records, "slab_alloc") != [])


def pool_refused(folder):
    lines, records = outcome("served", folder, "mode pool is used instead", most=GIB, SIMCUDA_FAIL="cuMemPoolCreate@1:801,cuMemPoolCreate@2:801")
    expect("pools of the driver's", dict(lines)["cuMemPoolCreate"], 2)  # one for the attempt without a cap
    expect_that("slabs", of_type(records, "slab_alloc") != [])


def synchronous(folder):
    lines, _ = outcome("served", folder, most=GIB, RATION_FREE="synchronous", SIMCUDA_LATENCY_US="500")
    expect("blocks", dict(lines)["cuMemFreeAsync"], 5)


WITHOUT_CAPS = {"SIMCUDA_FAIL": "cuDriverGetVersion@1:1,cuDriverGetVersion@2:1,cuDriverGetVersion@3:1"}


def without_caps():
    """A driver whose pools have no cap: their last partial step stays unused, as they might grow by another."""
    return whole(**WITHOUT_CAPS)


def few_bytes(**settings):
    """What is handed out again is at least what is asked for, and is reported as what was asked for."""
    def case(folder):
        lines, _ = outcome("few_bytes", folder, **settings)
        expect("full", lines[:2], [("null", 1), ("refused", OUT_OF_MEMORY)])
        expect("in blocks of 400, 61 and 61 bytes", lines[2:5], [("range", 193), ("range", 61), ("range", 60)])
        for bytes_, line in zip((100, 401, 512), lines[5:], strict=True):  # none of these fits the rest
            expect_that(f"{line}", line in (("refused", OUT_OF_MEMORY), ("range", bytes_)))
    return case


main({
    "blocks of the driver's pool, used again": served,
    "what threads have reserved": reserved_by_threads,
    "small blocks beside large ones": tiny,
    "attributes": attributes(),
    "deterministic": attributes(f"{OPPORTUNISTIC}=0", f"{INTERNAL_DEPENDENCIES}=0", TF_DETERMINISTIC_ALLOCATOR="1"),
    "one more try": once_more,
    "no more try": another_error,
    "a block that the driver does not take back": not_taken_back,
    "nothing preallocated": preallocated("0", STEP),
    "a size preallocated": preallocated("256MiB", 256 * MIB),
    "what mode pool would have": preallocated("-1", LIMIT),
    "more than the limit": preallocated("1GiB", STEP, "cannot preallocate 1.00GiB on device 0"),
    "no number": preallocated("much", STEP, "RATION_ASYNC_PREALLOCATE"),
    "another negative": preallocated("-2", STEP, "RATION_ASYNC_PREALLOCATE"),
    "nothing, as mode pool would have": preallocated("-1", STEP, RATION_PREALLOCATE="false"),
    "the whole limit": whole(),
    "the whole limit, preallocated": whole(RATION_ASYNC_PREALLOCATE="-1"),
    "the whole limit, streams lag": whole(SIMCUDA_LATENCY_US="200-400"),
    "the whole limit, frees wait": whole(RATION_FREE="synchronous"),
    "the whole limit, pools without caps": without_caps(),
    "a few bytes again": few_bytes(),
    "a few bytes again, pools without caps": few_bytes(**WITHOUT_CAPS),
    "a few bytes again, a pool that was made without one": few_bytes(SIMCUDA_FAIL="cuMemPoolCreate@1:1"),
    "a smaller device": smaller_device,
    "contexts that go": contexts,
    "peers": peers,
    "peers before there is a pool": early_peers,
    "peers no more when the pool is made": former_peers,
    "freed twice": twice,
    "no memory pools": no_pools,
    "a pool that cannot be made": pool_refused,
    "frees that wait": synchronous,
})
