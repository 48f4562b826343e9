#!/usr/bin/env python3
"""Without a limit, Ration is transparent to a program: the same results and queries, call by call."""
import pathlib

from harness import expect, expect_that, main, of_type, run

DEVICES = {"SIMCUDA_DEVICES": "2x4GiB"}


def same(program, **environment):
    def case(folder):
        plain = run(program, preload=None, **DEVICES)
        expect_that(f"{program} ran: {plain.status} {plain.err}", plain.status == 0 and plain.out.count("\n") > 900)
        done = run(program, folder=folder if "RATION_LOG" in environment else None, **DEVICES, **environment)
        expect("status, stderr", (done.status, done.err), (plain.status, plain.err))
        for before, after in zip(plain.out.splitlines(), done.out.splitlines()):
            expect("line", after, before)
        expect("lines", done.out.count("\n"), plain.out.count("\n"))
        print(f"compared: {plain.out.count(chr(10))} results of {program}")
    return case


MEMORY_QUERIES = ("in a context of its own", "in the primary context", "without a context", "with one block", "at the end",
                  "cuMemGetInfo_v2(free)")
SLACK = 64 << 10  # the overhead of a pool: its blocks' ends


def same_answer(before, after):
    """A pool may place a block anywhere; everything else is unchanged, the free bytes up to SLACK."""
    was, now = ((*line.partition(" = ")[::2],) for line in (before, after))
    expect("call", now[0], was[0])
    old, new = ([int(number) for number in words[1].split()] for words in (was, now))
    expect(f"code of {was[0]}", new[0], old[0])
    name = was[0].split(" ", 1)[1]
    if name in ("cuMemAlloc_v2", "cuMemAllocPitch_v2") and old[0] == 0 or name.startswith("cuMemFree_v2"):
        old[1] = new[1]
    if name in MEMORY_QUERIES:
        expect_that(f"free bytes: {after!r}, without Ration {before!r}", 0 <= old[1] - new[1] <= SLACK)
        old[1] = new[1]
    expect(f"answer of {was[0]}", new, old)


def nearly_same(program, **environment):
    def case(folder):
        plain = run(program, preload=None, **DEVICES)
        done = run(program, folder=folder, RATION_MODE="pool", **DEVICES, **environment)
        expect("status, stderr", (done.status, done.err), (plain.status, plain.err))
        expect("lines", done.out.count("\n"), plain.out.count("\n"))
        for before, after in zip(plain.out.splitlines(), done.out.splitlines()):
            same_answer(before, after)
        expect_that("there was a pool", of_type(done.logs["run.jsonl"], "slab_alloc"))
        print(f"compared: {plain.out.count(chr(10))} results of {program}")
    return case


def calls_of_the_program(folder):
    """The program's own calls reach the driver unchanged: none is dropped, repeated or reordered."""
    traces = []
    names = {line.split()[1].split("(")[0] for line in run("mixed_calls", preload=None, **DEVICES).out.splitlines()}
    hooked = ("cuMemAlloc", "cuMemFree", "cuCtxCreate", "cuCtxDestroy", "cuCtxAttach", "cuCtxDetach", "cuDevicePrimaryCtxRe",
              "cuMemcpy", "cuPointerGet", "cuStreamCreate", "cuStreamDestroy")
    for name, preload in (("plain", {"preload": None}), ("ration", {})):
        trace = pathlib.Path(folder) / name
        run("mixed_calls", SIMCUDA_TRACE=trace, RATION_MODE="direct", **preload, **DEVICES)
        # A request larger than the address space is refused with the driver's code, without a
        # driver call.
        refused = ("cuMemAlloc_v2 2", "cuMemAllocPitch_v2 2")
        traces.append([line for line in trace.read_text().splitlines()
                       if line.startswith(hooked) and not line.startswith(refused)])
    expect_that(f"{len(traces[0])} calls of {len(names)} kinds", len(traces[0]) > 300)
    for before, after in zip(*traces):
        expect("call", after, before)
    expect("calls", len(traces[1]), len(traces[0]))


main({
    "linked": same("mixed_calls", RATION_MODE="direct"),
    "linked, a pool": nearly_same("mixed_calls"),
    "linked, a pool from the first allocation on": nearly_same("mixed_calls", RATION_PREALLOCATE_AFTER="0"),
    "looked up, a pool that grows": nearly_same("mixed_calls_looked_up", RATION_PREALLOCATE="false"),
    "linked, with a log": same("mixed_calls", RATION_MODE="direct", RATION_LOG="run.jsonl"),
    "looked up": same("mixed_calls_looked_up", RATION_MODE="direct"),
    "switched off": same("mixed_calls", RATION_DISABLE="1"),
    "what reaches the driver": calls_of_the_program,
})
