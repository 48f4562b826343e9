#!/usr/bin/env python3
"""No late work reaches another owner's bytes (adversary.cc): VARIANT ROUNDS [SEED]."""
import collections
import os
import random
import signal
import sys

import harness
from harness import BUILD, LIBRARIES, LIBRARY, MIB, Failure, expect, expect_that, main, of_type, run

VARIANT, ROUNDS = sys.argv[1], sys.argv[2]
SEED = sys.argv[3] if len(sys.argv) > 3 else str(random.randrange(1 << 32))
RIGHT, WRONG_CODE, WRONG_BYTES = 0, 1, 3  # verdict.h
LIMIT = 12 * MIB  # tight: what six threads hold, and little besides, so that blocks come back soon
LAGGING = {"SIMCUDA_DEVICES": "2x16GiB", "SIMCUDA_LATENCY_US": "100-300"}
EVERYTHING = ("contexts", "peer", "green", "across", "async")
# What a program can rely on without Ration: its free waits for the contexts of the memory, not for a peer's.
ITS_OWN = ("contexts", "peer", "green", "async")
POOL = {"RATION_MODE": "pool", "RATION_LIMIT": LIMIT}
HALF_PREALLOCATED = {"RATION_PREALLOCATE": "6MiB", "RATION_PREALLOCATE_AFTER": "0", "RATION_HEADROOM": "0"}

VARIANTS = {
    "prealloc": ("sim", HALF_PREALLOCATED),
    "growth": ("sim", {"RATION_PREALLOCATE": "false"}),
    "older": ("older", HALF_PREALLOCATED | {"SIMCUDA_MISSING": "cuCtxRecordEvent"}),
    "driver": ("sim", {"RATION_MODE": "async", "RATION_LIMIT": 32 * MIB}),  # one step of the simulator's pools
    "granules": ("sim", HALF_PREALLOCATED | {"RATION_BACKING": "vmm"}),
    "granules_growth": ("sim", {"RATION_PREALLOCATE": "false", "RATION_BACKING": "vmm"}),
    "synchronous": ("sim", HALF_PREALLOCATED | {"RATION_FREE": "synchronous"}),
}


def adversary(*words, rounds=ROUNDS, **settings):
    environment = " ".join(f"{key}={value}" for key, value in (LAGGING | settings).items() if key.isupper())
    print(f"{environment} adversary {rounds} {SEED} {' '.join(words)}", flush=True)
    done = run("adversary", rounds, SEED, *words, **LAGGING, **settings)
    print(done.out, done.err[-500:], sep="", end="", flush=True)
    return done


def held_within_the_limit(records, limit):
    held = {0: 0, 1: 0}
    for record in records:
        if record["t"] == "sample":
            expect_that(f"seq {record['seq']}: {record['pool_reserved']} reserved", record["pool_reserved"] <= limit)
        if record["t"] in ("slab_alloc", "slab_free"):
            held[record["dev"]] += record["size"] if record["t"] == "slab_alloc" else -record["size"]
            expect_that(f"seq {record['seq']}: slabs of {held}", 0 <= held[record["dev"]] <= limit)


def in_mode_pool(folder):
    sim, settings = VARIANTS[VARIANT]
    settings = POOL | settings
    done = adversary(*EVERYTHING, folder=folder, sim=sim, **settings)
    expect("status", done.status, RIGHT)
    records = done.logs["run.jsonl"]
    held_within_the_limit(records, settings["RATION_LIMIT"])
    expect("mode", records[0]["mode"], settings["RATION_MODE"])
    # While threads race for the last pages the driver may serve one beside the pool.
    sources = collections.Counter(record["src"] for record in of_type(records, "alloc") if record["api"] == "cuMemAlloc_v2")
    expect_that(f"sources {sources}", set(sources) <= {"pool", "driver"} and sources["driver"] * 1000 < sources["pool"])


def without_ration(_):
    expect("status", adversary(*ITS_OWN, preload=None).status, RIGHT)


def in_mode_direct(_):
    expect("status", adversary(*ITS_OWN, RATION_MODE="direct", RATION_LIMIT=LIMIT).status, RIGHT)


def over_granules(settings):
    return settings.get("RATION_BACKING", "vmm") == "vmm" and settings.get("RATION_MODE") != "async"


def broken(_):
    """A core whose blocks are reused at once must be caught: by the bytes, or as work whose pages are gone.

    Granules of a block that was freed at once may be unmapped, too, before its work has run: then the driver answers 700,
    or the test's kernel, which writes through the address as code of the host, dies of it.
    """
    front = str(BUILD / "lib/ration/broken/libration.so")
    expect_that("the broken core's preload library exists", os.path.exists(front))
    preload = LIBRARIES.replace(str(LIBRARY), front)
    by_bytes = 0
    for sim, settings in VARIANTS.values():
        if settings.get("RATION_FREE") != "synchronous":
            done = adversary(*EVERYTHING, preload=preload, sim=sim, **POOL | settings)
            pages_gone = (done.status == WRONG_CODE and "answered 700\n" in done.out) or done.status == -signal.SIGSEGV
            caught = done.status == WRONG_BYTES and "wrong bytes in " in done.out
            expect_that(f"status {done.status} of {settings}", caught or (pages_gone and over_granules(settings)))
            by_bytes += caught
    expect_that("the bytes of at least one run tell", by_bytes > 0)


if VARIANT == "broken":
    main({"a core without quarantine is caught": broken})
harness.HANG = 1200 if int(ROUNDS) > 10000 else 120
if VARIANT == "baseline":
    main({"without Ration": without_ration, "in mode direct": in_mode_direct})
if VARIANT not in VARIANTS:
    raise Failure(f"no variant {VARIANT}")
main({f"{VARIANT}: every byte is its owner's": in_mode_pool})
