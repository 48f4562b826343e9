#!/usr/bin/env python3
"""Children that no handler of fork(2) is called for, and that exit: what is their parent's stays as it is."""
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "preload"), str(TESTS / "preload/group")]
from harness import expect, expect_that, main, of_type, read_log  # noqa: E402
from members import Machine  # noqa: E402


def child(way, ends=1):
    def case(folder):
        with Machine(folder, RATION_PREALLOCATE="false") as machine:
            log = machine.folder / "run.jsonl"
            parent = machine.start("bare_children", way, RATION_LIMIT="1GiB", RATION_LOG=log, SIMCUDA_CONTEXT_BYTES="1MiB")
            expect(f"what the parent says, and {parent.err()!r}", parent.read(), "child: 0")
            records = read_log(log)
            expect("ends, frees", (len(of_type(records, "end")), len(of_type(records, "free"))), (0, 0))
            expect("files of shared blocks", len([name for name in machine.state.glob("ipc-*") if name.suffix != ".sock"]), 1)
            expect("status of the parent", parent.end(), 0)
            expect("standard error", parent.err(), "")
            # A child in the same memory has used up the handlers that run at the exit of both.
            expect("ends of the parent", len(of_type(read_log(log), "end")), ends)
            if ends:
                expect("the last record", read_log(log)[-1]["t"], "end")
                expect_that("the parent removes its file", not list(machine.state.glob("ipc-*")))
    return case


cases = {f"a child by {way}": child(way) for way in ("fork", "_Fork", "clone", "namespace")}
cases["a child in the same memory"] = child("shared", ends=0)
main(cases)
