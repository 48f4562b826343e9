#!/usr/bin/env python3
"""A program that closes descriptors that are not its own, while a record is being written."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "preload"))
from harness import expect, expect_that, main, of_type, run  # noqa: E402

ALLOCATIONS = 11


def taken(how):
    def case(folder):
        done = run("taken_descriptor", how, folder=folder, RATION_LIMIT="1GiB", RATION_MODE="direct")
        expect("status, standard error", (done.status, done.err), (0, ""))
        files, foreign = map(int, re.fullmatch(r"files=(\d+) foreign=(\d+)\n", done.out).groups())
        expect_that(f"descriptors were taken: {files}", files >= 1)
        expect("bytes of Ration's in the program's files", foreign, 0)
        records = done.logs["run.jsonl"]
        lost = sum(record["count"] for record in of_type(records, "dropped"))
        expect_that(f"records that are lost: {lost}", lost == 0 or how == "always")
        expect("records written and lost", len(of_type(records, "alloc")) + lost, ALLOCATIONS)
        expect("the last record", records[-1]["t"], "end")
    return case


main({f"the log's number is given away {how}": taken(how) for how in ("once", "always")})
