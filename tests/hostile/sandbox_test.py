#!/usr/bin/env python3
"""Programs that give up system calls once they have started (confining.cc)."""
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "preload"), str(TESTS / "preload/group")]
from harness import MIB, expect, expect_that, main, of_type, read_log  # noqa: E402
from members import REFUSED, Machine  # noqa: E402

MODES = ("pool", "async", "direct")
GROUP = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB", "RATION_MODE": "direct"}
MOST, REST = 900 * MIB, 124 * MIB


def computing(mode, **settings):
    """Any other call than those of a program that computes would end it."""
    def case(folder):
        log = pathlib.Path(folder) / "log.jsonl"
        with Machine(folder, RATION_MODE=mode, RATION_LIMIT="64MiB", RATION_LOG=log, **settings) as machine:
            program = machine.start("confining")
            program.do(f"start alloc={MIB} compute_only alloc={30 * MIB}")
            expect("beyond the limit", program(f"alloc={60 * MIB}"), REFUSED)
            program.do(f"free alloc={32 * MIB} alloc={30 * MIB} free free")
            program.ends()
            expect("nothing on standard error", program.err() == "", not settings)
            records = read_log(log)
            expect("the log's end", [(end["allocs"], end["frees"], end["ooms"]) for end in of_type(records, "end")], [(4, 3, 1)])
    return case


def opens_nothing(folder):
    with Machine(folder, **GROUP) as machine:
        member, other = machine.start("confining"), machine.start("confining")
        member.do("start open_nothing")
        other.do(f"start alloc={MOST}")
        expect("the group is full", member(f"alloc={REST + 1}"), REFUSED)
        other.kill()
        member.do(f"alloc={MOST}")
        expect("the limit holds", member(f"alloc={REST + 1}"), REFUSED)
        member.ends()
        expect("standard error", member.err(), "")


def opened_nothing_yet(folder):
    with Machine(folder, RATION_LIMIT="64MiB") as machine:
        program = machine.start("confining")
        program.do("open_nothing")
        program("start")
        expect("without a limit that can be enforced", program(f"alloc={MIB}"), REFUSED)
        expect_that(f"the line: {program.err()}", "cannot load its core" in program.err() and "RATION_DISABLE=1" in program.err())


main({f"a program that may only compute, {mode}": computing(mode) for mode in MODES} |
     {"a program that may only compute, with diagnostics": computing("pool", RATION_DIAGNOSTICS="trace"),
      "a member that may open nothing finds the dead": opens_nothing,
      "a program that may open nothing before its first call is refused, in words": opened_nothing_yet})
