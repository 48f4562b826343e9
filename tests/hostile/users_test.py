#!/usr/bin/env python3
"""Members that can no longer open their group's file: another user, another root folder (confining.cc)."""
import contextlib
import os
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "preload"), str(TESTS / "preload/group")]
from harness import MIB, expect, expect_that, main  # noqa: E402
from members import REFUSED, Machine  # noqa: E402

GROUP = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB", "RATION_MODE": "direct"}
MOST, REST = 900 * MIB, 124 * MIB
BLIND = "ration: group 'g': members that have ended cannot be found, so what they held stays charged: "


@contextlib.contextmanager
def beside_a_holder(folder, ops):
    """A machine, a member that has executed `ops`, and another one that holds most of the group's limit."""
    with Machine(folder, **GROUP) as machine:
        (machine.folder / "empty").mkdir()
        member, other = machine.start("confining"), machine.start("confining")
        member.do("start")
        other.do(f"start alloc={MOST}")
        for op in ops:
            member.do(op.format(empty=machine.folder / "empty"))
        yield machine, member, other


def confined(*ops):
    """A member executes `ops`; then another one dies that holds most of the group's limit."""
    def case(folder):
        with beside_a_holder(folder, ops) as (_, member, other):
            expect("the group is full", member(f"alloc={REST + 1}"), REFUSED)
            other.kill()
            member.do(f"alloc={MOST}")
            expect("the limit holds", member(f"alloc={REST + 1}"), REFUSED)
            expect("standard error", member.err(), "")
    return case


def blind(*ops):
    """The same where the member has closed what it did not open: nothing is left to look with."""
    def case(folder):
        with beside_a_holder(folder, ops) as (machine, member, other):
            other.kill()
            for _ in range(2):
                expect("what a dead member held", member(f"alloc={MOST}"), REFUSED)
            line, = member.err().splitlines()
            expect_that(f"the line: {line}", line.startswith(BLIND + str(machine.state)))
            machine.ps()  # another process finds it
            member.do(f"alloc={MOST}")
    return case


if os.geteuid() != 0:
    print("skipped: not root")
    sys.exit(0)
main({"a member becomes another user": confined("other_user"),
      "a member's effective user changes": confined("other_effective_user"),
      "a member enters an empty root folder": confined("root={empty}"),
      "a member enters an empty root folder as another user": confined("root={empty}", "other_user"),
      "a member closes all descriptors that it did not open": confined("close_all"),
      "a member closes all descriptors, then enters an empty root folder": blind("close_all", "root={empty}")})
