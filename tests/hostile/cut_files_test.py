#!/usr/bin/env python3
"""Files of the state folder that are cut short while processes use them: none dies of it, and a group's limit fails closed."""
import os
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / folder) for folder in ("preload", "preload/group", "preload/ipc")]
from harness import GIB, MIB, expect, expect_that, main, read_log  # noqa: E402
from members import MODES, REFUSED, Machine  # noqa: E402
from peers import OUT_OF_MEMORY, Peers  # noqa: E402

GROUP = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB"}


def cut(machine, pattern):
    file, = machine.state.glob(pattern)
    os.truncate(file, 0)
    return file


def in_a_group(mode):
    def case(folder):
        with Machine(folder, **MODES[mode], **GROUP) as machine:
            log = machine.folder / "log.jsonl"
            member = machine.member(RATION_LOG=log)
            member.do("alloc=100m alloc=1m")
            file = cut(machine, "group-g")
            for op in ("alloc=200m", "alloc=300m"):
                expect(op, member(op), REFUSED)
            member.do("free=0")
            free, total = member.memory()  # a pool may have a hole
            expect("total", total, GIB)
            expect_that(f"free: {free}", free == 0 if mode == "direct" else free < 300 * MIB)
            expect("more than before", member("alloc=500m"), REFUSED)
            member.ends()
            line, = member.err().splitlines()
            expect("the line", line, f"ration: group 'g': its file was cut short, so every allocation is refused: {file}")
            expect("the last record", read_log(log)[-1]["t"], "end")
    return case


def in_no_group(mode):
    def case(folder):
        with Machine(folder, **MODES[mode], RATION_LIMIT="1GiB") as machine:
            member = machine.member()
            member.do("alloc=100m alloc=1m")
            cut(machine, "ungrouped")
            member.do("alloc=200m free=0 alloc=300m query")
            expect("more than the limit", member("alloc=900m"), REFUSED)
            member.ends()
            expect("standard error", member.err(), "")
    return case


def shared(folder):
    with Peers(folder) as machine:
        exporter, importer = machine.peer(), machine.peer()
        exporter.do("take 5000 1", "take 5000 2", "take 5000 3")
        importer.do(f"open {exporter.share('own0')}", f"open {exporter.share('own1')}")
        file = cut(machine, "ipc-*")
        expect("another one shared", exporter.code("share own2"), OUT_OF_MEMORY)
        expect("read", importer.do("read opened0 5000"), "1")
        exporter.do("free own0", "take 5000 4")
        expect("not reused", importer.do("read opened0 5000"), "1")
        importer.do("close opened0", "close opened1")
        expect_that(f"the line: {exporter.member.err()}", f"{file}: it was cut short" in exporter.member.err())
        exporter.end()
        importer.end()


main({f"in a group, mode {mode}": in_a_group(mode) for mode in MODES} | {f"in no group, mode {mode}": in_no_group(mode) for mode in MODES}
     | {"of shared blocks": shared})
