#!/usr/bin/env python3
"""Under a limit a program gets the answers of a driver on a device of that size, and waits where that driver does
(as_driver.cc). Each case runs twice: without Ration on such a device, and under it on a larger one.
as_driver_test.py MEMORY: what the memory is made of, a key of MEMORIES."""
import sys

from harness import GIB, MIB, SANITIZED, expect, expect_that, main, run

CASES = ("in_turn", "large_after_idle", "all_after_idle", "small_after_synchronise", "larger_beside_work", "larger_than_freed_during_work", "never_fits", "invalid_when_full",
         "allocates_under_a_lock", "threads", "threads_ordered")
MEMORIES = {
    "granules": {"preallocated": {}, "preallocated at first": {"RATION_PREALLOCATE_AFTER": "0"}, "grown on demand": {"RATION_PREALLOCATE": "false"}},
    "slabs": {"slabs": {"RATION_BACKING": "slab"}, "slabs on demand": {"RATION_BACKING": "slab", "RATION_PREALLOCATE": "false"}},
    "driver": {"no pool": {"RATION_MODE": "direct"}, "the driver's pool": {"RATION_MODE": "async"}},
}
SETTINGS = MEMORIES[sys.argv[1]]
# What must differ, by case and settings: the driver's lines, ours, and why.
ALLOWED = {
    # The freed block's slab is too small, and while the device is at work it cannot go back without a wait.
    ("larger_beside_work", name): ("cuMemAlloc: 0\ncuMemAllocManaged: 2", "cuMemAlloc: 2\ncuMemAllocManaged: 2")
    for name in ("slabs", "slabs on demand")
} | {("mixed_after_idle", "slabs on demand"): ("cuLaunchHostFunc: 0\ncuMemAlloc: 0", "cuLaunchHostFunc: 0\ncuMemAlloc: 2")}


def natively(case, limit, *more):
    return run("as_driver", case, str(limit), *more, preload=None, SIMCUDA_DEVICES=limit, SIMCUDA_CONTEXT_BYTES="0")


def under_ration(case, limit, *more, **settings):
    return run("as_driver", case, str(limit), *more, **{"RATION_MODE": "pool", "RATION_LIMIT": limit} | settings)


def same(case, limit, name):
    def one(_):
        native, ours = natively(case, limit), under_ration(case, limit, **SETTINGS[name])
        expect("status, natively and under Ration", (native.status, ours.status), (0, 0))
        wanted = native.out.replace(*ALLOWED.get((case, name), ("", "")))
        expect("answers", ours.out.splitlines(), wanted.splitlines())
    return one


def fits(settings):
    """Equal blocks that fill the limit, whatever their number."""
    def one(_):
        for limit in (64 * MIB, 100_000_000, 8 * GIB):
            for blocks in (3, 64) if SANITIZED else (1, 2, 3, 4, 7, 16, 31, 58, 63, 64):
                done = under_ration("fits", limit, str(blocks), **settings)
                expect(f"{blocks} blocks in {limit}", done.out.splitlines(), ["cuMemAlloc: 0"] * blocks)
    return one


def fits_rounded(settings):
    """Blocks that fill the limit to the last byte: where the driver's rounding refuses one, no more are refused."""
    def under_settings(*case):
        return under_ration(*case, **settings)

    def one(_):
        for limit in (64 * MIB,) if SANITIZED else (64 * MIB, 100_000_000):
            for blocks in (18, 62) if SANITIZED else (3, 7, 18, 34, 62):
                done = [play("fits_rounded", limit, str(blocks)) for play in (natively, under_settings)]
                served = [run.out.splitlines().count("cuMemAlloc: 0") for run in done]
                expect_that(f"{blocks} blocks in {limit}: served {served}", served[1] >= served[0] >= blocks - 1)
    return one


def fills(settings):
    """Equal blocks of any size, as many as on a device of the limit's size. In mode async one may be lost."""
    def one(_):
        for limit, block in ((64 * MIB, 20 * MIB), (64 * MIB, 828504), (64 * MIB, 399961), (256 * MIB, 34329882), (256 * MIB, 3706010),
                             (GIB, 22974874), (GIB, 11270253), (8 * GIB, 100 * MIB)):
            served = [int(run.out.split()[1]) for run in (natively("fill", limit, str(block)),
                                                          under_ration("fill", limit, str(block), **settings))]
            least = served[0] - (settings.get("RATION_MODE") == "async")
            expect_that(f"{block} bytes each in {limit}: {served}", served[1] >= least)
    return one


def fits_in_group(settings):
    """The same in a group with a limit, where the process has none of its own."""
    def one(folder):
        group = {"RATION_GROUP": "g", "RATION_STATE_DIR": folder, "RATION_MODE": "pool", "RATION_PREALLOCATE": str(GIB)} | settings
        for limit in (64 * MIB, 100_000_000, GIB):
            for blocks in (1, 2, 3, 7, 24, 32, 48, 64):
                done = run("as_driver", "fits", str(limit), str(blocks), RATION_GROUP_LIMIT=limit, **group)
                expect(f"{blocks} blocks in {limit}", done.out.splitlines(), ["cuMemAlloc: 0"] * blocks)
    return one


def fits_in_turn(settings):
    """The same in one process, whatever filled the limit before."""
    def one(_):
        for limit in (64 * MIB,) if SANITIZED else (64 * MIB, 100_000_000, 8 * GIB):
            for order in (1, 66) if SANITIZED else (1, 2, 29, 66):
                expect(f"numbers in order {order}, in {limit}", under_ration("fits_in_turn", limit, str(order), **settings).out, "refused 0\n")
    return one


def threads_at_first(settings):
    """Eight blocks that fill the limit, by four threads, at the beginning of a program; which of them is first differs."""
    def one(_):
        for _ in range(10 if SANITIZED else 40):
            expect("answers", under_ration("threads_at_first", 512 * MIB, **settings).out, "refused: 0\n")
    return one


# Of 64 MiB one step of the driver's pool is half.
cases = {f"{case}, {name}": same(case, (GIB if name == "the driver's pool" else 64 * MIB), name)
         for name in SETTINGS for case in CASES}
cases |= {f"{case}, {name}": same(case, GIB, name) for name in SETTINGS for case in ("again_when_full", "threads_large", "mixed_after_idle", "beside_captures")}
cases |= {f"blocks that fill the limit, {name}": fits(settings) for name, settings in SETTINGS.items()}
cases |= {f"blocks that fill the limit with the driver's rounding, {name}": fits_rounded(settings) for name, settings in SETTINGS.items()}
cases |= {f"equal blocks of any size, {name}": fills(settings) for name, settings in SETTINGS.items()}
if SETTINGS is MEMORIES["granules"]:  # slabs and the driver's pool are in pieces then
    cases |= {f"threads of two contexts, {name}": same("threads_of_two_contexts", GIB, name) for name in SETTINGS}
if SETTINGS is MEMORIES["driver"]:
    cases["threads at first, the driver's pool"] = threads_at_first(SETTINGS["the driver's pool"])
    cases["threads at first, the driver's pool, preallocated"] = threads_at_first(
        SETTINGS["the driver's pool"] | {"RATION_ASYNC_PREALLOCATE": str(512 * MIB)})
cases |= {f"blocks that fill a group's limit, {name}": fits_in_group(settings) for name, settings in SETTINGS.items()
          if name not in ("grown on demand", "preallocated", "slabs", "slabs on demand")}  # slabs are cut for the process's limit only
cases |= {f"blocks that fill the limit in turn, {name}": fits_in_turn(settings) for name, settings in SETTINGS.items()}
main(cases)
