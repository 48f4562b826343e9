#!/usr/bin/env python3
"""What the driver takes on its own account for contexts, code and limits (programs/overhead.cc): told in the log's last
record, and charged with RATION_CHARGE_CONTEXT; never a neighbour's memory."""
import pathlib

from harness import MIB, expect, expect_that, main, of_type, run

CONTEXT, VARIABLE, STACK, HEAP, FIFO = 64, 32, 256, 32, 16  # MiB
LIMIT = 2048
SIMULATED = {"SIMCUDA_DEVICES": "4GiB", "SIMCUDA_CONTEXT_BYTES": f"{CONTEXT}MiB"}
LOADS = ("cuModuleLoad", "cuModuleLoadData", "cuModuleLoadDataEx", "cuModuleLoadFatBinary")
USES = ("cuKernelGetFunction", "cuLibraryGetModule", "cuLibraryGetGlobal")
FRESH = LIMIT - CONTEXT
LOADED = FRESH - VARIABLE
DEEP = FRESH - STACK

# name: steps, each with the free memory that is reported then where the driver's own is charged
STEPS = {
    "a context": [("context", FRESH), ("destroy", -1)],
    "a context and all its parts": [
        ("primary", FRESH), ("cuModuleLoadData", LOADED), ("stack", LOADED - STACK), ("reset", -1), ("primary", FRESH)],
    "a module until it is unloaded": [("context", FRESH), ("cuModuleLoadData", LOADED), ("unload", FRESH)],
    "a library from its first use until it is unloaded": [
        ("context", FRESH), ("library", FRESH), ("kernel", FRESH), ("cuKernelGetFunction", LOADED),
        ("cuLibraryGetModule", LOADED), ("cuLibraryGetGlobal", LOADED), ("unload_library", FRESH)],
    "a stack until it is smaller": [
        ("context", FRESH), ("stack", DEEP), ("stack", DEEP), ("stack_back", FRESH)],
    "the buffer of printf with the module that may use it": [
        ("context", FRESH), ("fifo", FRESH), ("cuModuleLoadData", LOADED - FIFO), ("unload", FRESH)],
    "what a launch takes": [
        ("context", FRESH), ("heap", FRESH), ("cuModuleLoadData", LOADED), ("launch", LOADED - HEAP)],
    "code beside blocks": [
        ("context", FRESH), ("allocate", FRESH - 100), ("cuModuleLoadData", LOADED - 100), ("unload", FRESH - 100)],
    "nothing that threads leave": [("context", FRESH), ("threads", FRESH)],
}
del STEPS["the buffer of printf with the module that may use it"]  # see charged_fifo()


def overhead(*ops, folder, **settings):
    done = run("overhead", "init", *ops, folder=folder, **(SIMULATED | settings))
    expect("status, stderr", (done.status, done.err), (0, ""))
    codes = [line.split(" ")[0] for line in done.out.splitlines()[1:]]
    expect("codes", [code for code in codes if not code.endswith("=0")], [])
    return [int(line.rsplit(" ", 1)[1]) for line in done.out.splitlines()[1:]], done.logs["run.jsonl"]


def told(records):
    ends = of_type(records, "end")[0]["overhead"][0]
    return {kind: ends[kind] / MIB for kind in ("context", "module", "limit", "other") if ends[kind] != 0}


def charged(steps, mode):
    def case(folder):
        free, _ = overhead(*(op for op, _ in steps), folder=folder, RATION_LIMIT=LIMIT * MIB, RATION_MODE=mode,
                           RATION_CHARGE_CONTEXT="true", RATION_PREALLOCATE="false")
        slack = 2 if mode == "pool" else 0  # granules
        expect_that(f"free {free}", all(want - slack <= seen <= want for seen, (_, want) in zip(free, steps, strict=True)))
    return case


def uncharged(steps):
    """The same, and nothing of it counts."""
    def case(folder):
        free, records = overhead(*(op for op, _ in steps), folder=folder, RATION_LIMIT=LIMIT * MIB, RATION_MODE="direct")
        expect_that(f"free {free}", all(seen in (-1, LIMIT, LIMIT - 100) for seen in free))
        expect("told without NVML's figure", told(records).get("context"), None)
    return case


def told_of(ops, **wanted):
    def case(folder):
        _, records = overhead("context", *ops, folder=folder, RATION_MODE="direct")
        expect("told", told(records), wanted)
        _, records = overhead("nvml", "context", *ops, folder=folder, RATION_MODE="direct")
        expect("told with NVML's figure", told(records), {"context": CONTEXT} | wanted)
    return case


def after_a_library(use):
    """Whichever call uses a library first, and only that one."""
    return told_of(["library", "kernel", use, use], module=VARIABLE)


def unloaded(*ops):
    """What is unloaded is told no more: twice in a row is not twice as much."""
    return told_of([*ops, *ops], module=VARIABLE)


def unmonitored(folder):
    """Without NVML's figure what a neighbour takes meanwhile counts up to what the call can take, and what it frees, not
    at all."""
    _, records = overhead("neighbour", "context", "take", "during=cuModuleLoadData", "cuModuleLoadData", folder=folder,
                          RATION_MODE="direct", SIMCUDA_MACHINE=folder)
    expect("told", told(records), {})
    (pathlib.Path(folder) / "run.jsonl").unlink()
    _, records = overhead("neighbour", "context", "during=cuCtxSetLimit", "heap", folder=folder, RATION_MODE="direct",
                          SIMCUDA_MACHINE=folder)
    expect_that(f"told {told(records)}", told(records).get("limit", 0) <= 104)


def beside_neighbour(charge):
    """A neighbour that takes and frees inside each measured call."""
    def case(folder):
        calls = ["cuModuleLoadData", "unload", "stack", "stack_back", "cuModuleLoadData", "unload", "cuModuleLoadData"]
        during = [f"during={symbol}" for symbol in ("cuCtxCreate_v2",)]
        free, records = overhead("nvml", "neighbour", *during, "context", "during=cuModuleLoadData", *calls[:2],
                                 "during=cuCtxSetLimit", *calls[2:4], "during=cuModuleLoadData", *calls[4:],
                                 folder=folder, RATION_MODE="direct", SIMCUDA_MACHINE=folder, RATION_LIMIT=LIMIT * MIB,
                                 RATION_CHARGE_CONTEXT="true" if charge else "false")
        if charge:
            expect("free", free[3:], [FRESH, FRESH, LOADED, FRESH, FRESH, DEEP, FRESH, FRESH, LOADED, FRESH, LOADED])
        expect("told", told(records), {"context": CONTEXT, "limit": STACK})
    return case


def killed(folder):
    """A member that is killed inside a measured call leaves nothing charged in its group."""
    group = {"RATION_GROUP": "overhead", "RATION_GROUP_LIMIT": LIMIT * MIB, "RATION_CHARGE_CONTEXT": "true",
             "RATION_MODE": "direct", "SIMCUDA_MACHINE": folder, **SIMULATED}
    for symbol, op in (("cuModuleLoadData", "cuModuleLoadData"), ("cuCtxSetLimit", "stack"), ("cuModuleUnload", "unload")):
        done = run("overhead", "init", "context", "cuModuleLoad", f"killed_in={symbol}", op, **group)
        expect("status", done.status, -9)
    done = run("overhead", "init", "context", **group)
    expect("free", done.out.splitlines()[-1], f"context=0 {FRESH}")


def too_large(folder):
    """What the driver refuses leaves the books as they were."""
    done = run("overhead", "init", "context", "stack", "stack_too_large", "stack_back", RATION_LIMIT=LIMIT * MIB,
               RATION_MODE="direct", RATION_CHARGE_CONTEXT="true", **SIMULATED)
    expect("lines", done.out.splitlines()[1:],
           [f"context=0 {FRESH}", f"stack=0 {DEEP}", f"stack_too_large=2 {DEEP}", f"stack_back=0 {FRESH}"])


def charged_fifo(folder):
    """The buffer comes with the load of a module, and stays with the context."""
    free, _ = overhead("context", "fifo", "cuModuleLoadData", "unload", folder=folder, RATION_LIMIT=LIMIT * MIB,
                       RATION_MODE="direct", RATION_CHARGE_CONTEXT="true")
    expect("free", free, [FRESH, FRESH, LOADED - FIFO, FRESH - FIFO])


def bound(folder):
    """Where nothing measures a first context, all of the device that is not ours is charged, and not told."""
    free, records = overhead("neighbour", "take", "context", "destroy", "context", folder=folder, RATION_LIMIT=LIMIT * MIB,
                             RATION_MODE="direct", RATION_CHARGE_CONTEXT="true", SIMCUDA_INTEGRATED="1",
                             SIMCUDA_MACHINE=folder)
    with_its_context = LIMIT - 2 * CONTEXT - 100
    expect("free", free, [-1, -1, with_its_context, -1, with_its_context])
    expect("told", (told(records), of_type(records, "end")[0]["overhead"][0]["unmeasured"]), ({}, 2))


def beside_idle_pool(**settings):
    """What a pool holds and does not use makes room for the driver's own, natively with as many contexts."""
    def case(folder):
        ops = ("init", "context", "allocate", "deep_stack", "to_the_last_context")
        large = SIMULATED | {"SIMCUDA_CONTEXT_BYTES": "200MiB"}  # memory ends before the number of contexts does
        native = run("overhead", *ops, preload=False, **large).out.splitlines()
        done = run("overhead", *ops, folder=folder, **(large | settings))
        expect("codes", [line.split(" ")[0] for line in done.out.splitlines()], [line.split(" ")[0] for line in native])
        trims = {record["api"] for record in of_type(done.logs["run.jsonl"], "trim")}
        expect("room made by", trims, {"cuCtxSetLimit", "cuCtxCreate_v2"})
        oom = of_type(done.logs["run.jsonl"], "oom")[-1]
        expect("the last refusal", (oom["api"], oom["reason"]), ("cuCtxCreate_v2", "device"))
    return case


def beside_used(**settings):
    """A slab, or a chunk of the driver's pool, that holds a block cannot go back: the refusal is explained."""
    def case(folder):
        done = run("overhead", "init", "context", "allocate", "deep_stack", folder=folder, **(SIMULATED | settings))
        expect("code", done.out.splitlines()[-1].split(" ")[0], "deep_stack=2")
        oom = of_type(done.logs["run.jsonl"], "oom")
        expect("refusals", [(record["api"], record["reason"]) for record in oom], [("cuCtxSetLimit", "pool_holds")])
    return case


def charged_beside_pool(backing, **group):
    """What is charged after the preallocation takes its room from the pool, as far as that is free."""
    def case(folder):
        free, records = overhead("context", "allocate", "stack", "cuModuleLoadData", "allocate", folder=folder,
                                 RATION_CHARGE_CONTEXT="true", RATION_BACKING=backing, **group)
        wanted = [FRESH, FRESH - 100, DEEP - 100, DEEP - 100 - VARIABLE, DEEP - 200 - VARIABLE]
        expect_that(f"free {free}", all(want - 4 <= seen <= want for seen, want in zip(free, wanted, strict=True)))
        over = of_type(records, "end")[0]["reserved_peak"][0] / MIB + CONTEXT + STACK + VARIABLE - LIMIT
        expect_that(f"beyond the limit for a moment: {over} MiB", over <= STACK + VARIABLE)
    return case


main({f"charged: {name}, {mode}": charged(steps, mode) for mode in ("direct", "pool") for name, steps in STEPS.items()}
     | {f"not charged: {name}": uncharged(steps) for name, steps in STEPS.items()}
     | {f"told: {call}": told_of([call], module=VARIABLE) for call in LOADS}
     | {f"told: a library's first use by {use}": after_a_library(use) for use in USES}
     | {"told: a stack": told_of(["stack"], limit=STACK),
        "told: modules one after the other": unloaded("cuModuleLoadData", "unload"),
        "told: libraries one after the other": unloaded("library", "cuLibraryGetModule", "unload_library"),
        "told beside a neighbour": beside_neighbour(charge=False),
        "charged beside a neighbour": beside_neighbour(charge=True),
        "told beside a neighbour, without NVML": unmonitored,
        "charged by a bound": bound,
        "beside an idle pool": beside_idle_pool(RATION_PREALLOCATE="true"),
        "beside an idle pool under a limit": beside_idle_pool(RATION_LIMIT=f"{4096}MiB"),
        "beside a slab in use": beside_used(RATION_BACKING="slab", RATION_PREALLOCATE="true"),
        "beside a chunk in use": beside_used(RATION_MODE="async", RATION_ASYNC_PREALLOCATE="-1"),
        "charged beside a pool of granules": charged_beside_pool("vmm", RATION_LIMIT=LIMIT * MIB),
        "charged beside a slab": charged_beside_pool("slab", RATION_LIMIT=LIMIT * MIB),
        "charged in a group": charged_beside_pool("vmm", RATION_GROUP="charged", RATION_GROUP_LIMIT=LIMIT * MIB),
        "charged: the buffer of printf": charged_fifo,
        "charged: a stack that the device does not have": too_large,
        "a member is killed inside a measured call": killed})
