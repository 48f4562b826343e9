#!/usr/bin/env python3
"""Invalid frees, queries and IPC calls (misuse.cc): answered as without Ration, except where a pool hides its slabs."""
import pathlib
import re

from harness import GIB, expect, expect_that, main, of_type, run
from log_books import added_up

MACHINE = {"SIMCUDA_DEVICES": "4GiB"}


def answers(done):
    expect_that(f"status {done.status}, {done.out[-200:]!r} {done.err!r}", done.status == 0)
    return [tuple(line.rsplit(": ", 1)) for line in done.out.splitlines()]


def failed_frees(reported):
    return sum(1 for what, code in reported if re.search(r"freed( in stream order)?$", what) and code != "0")


def same(mode, differences):
    def case(folder):
        plain = answers(run("misuse", preload=None, **MACHINE))
        done = run("misuse", folder=folder, RATION_LIMIT="1GiB", RATION_MODE=mode, **MACHINE)
        reported = answers(done)
        expect_that(f"{len(plain)} answers", len(plain) > 100)
        for before, after in zip(plain, reported):
            expect("answer", after, (before[0], differences.get(before[0], before[1])))
        expect("answers", len(reported), len(plain))
        records = done.logs["run.jsonl"]
        books = added_up(records, {0: GIB})
        expect("live at the end", len(books.live), 0)
        expect("failed frees", records[-1]["failed_frees"], failed_frees(reported))
        return records
    return case


def pool(folder):
    records = same("pool", {})(folder)
    expect("refusals", of_type(records, "oom"), [])
    expect("counted", (records[-1]["refused_ipc"], records[-1]["ooms"]), (0, 0))


def direct(folder):
    records = same("direct", {})(folder)
    expect("refusals", of_type(records, "oom"), [])


def of_the_driver(folder):
    records = same("async", {"a block shared": "1", "the handle was written": "0"})(folder)
    expect("refusals", of_type(records, "oom"), [])


def slabs(preallocate):
    """Only the start of a live block is accepted: not a hole, the slab's own start or its last byte."""
    def case(folder):
        log = pathlib.Path(folder) / "run.jsonl"
        done = run("misuse", str(log), folder=folder, RATION_LIMIT="1GiB", RATION_MODE="pool",
                   RATION_PREALLOCATE=preallocate, **MACHINE)
        reported = answers(done)
        inside = [(what, code) for what, code in reported if what.startswith(("no block of a slab", "range of no block", "a hole", "range of a hole"))]
        expect_that(f"{len(inside)} places", len(inside) > 20)
        expect("unexpected answers", [each for each in inside if each[1] != ("500" if each[0].startswith("range") else "1")], [])
        expect("touched", [what for what, _ in inside if what.endswith(" touched")], [])
        expect("slabs", reported[-1], ("slabs: 1, blocks at a slab's start", "0"))
        records = done.logs["run.jsonl"]
        added_up(records, {0: GIB})
        expect("failed frees", records[-1]["failed_frees"], failed_frees(reported))
    return case


main({
    "without a pool": direct,
    "in a pool": pool,
    "in a driver's pool": of_the_driver,
    "inside the slab that was preallocated": slabs("true"),
    "inside slabs that grew": slabs("false"),
})
