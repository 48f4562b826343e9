#!/usr/bin/env python3
"""Processes whose umask takes from the owner, before others that share their state folder."""
import os
import pathlib
import stat
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "preload"), str(TESTS / "preload/group")]
from harness import PROGRAMS, expect, expect_that, main  # noqa: E402
from members import REFUSED, Machine  # noqa: E402

GROUP = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB"}
# Root passes every mode, but for these two capabilities.
OBEYING = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


def start(machine, umask, **settings):
    command = [*OBEYING, "sh", "-c", f'umask {umask}; exec "$@"', "sh", str(PROGRAMS / "steps"), "obey"]
    member = machine.launch(command, machine.environment(**settings))
    member.do("init context=0")
    return member


def shared(umask):
    def case(folder):
        with Machine(folder, RATION_MODE="direct") as machine:
            first = start(machine, umask, **GROUP)
            first.do("alloc=600m")
            second = start(machine, "022", **GROUP)
            expect("what the first member leaves is not enough", second("alloc=600m"), REFUSED)
            second.do("alloc=300m")
            expect("the first member's standard error", first.err(), "")
            expect("the second member's standard error", second.err(), "")
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (machine.state, *machine.state.iterdir())}
            expect_that(f"modes are set: { {name: oct(mode) for name, mode in modes.items()} }",
                        modes.pop("state") == 0o700 and len(modes) > 0 and set(modes.values()) == {0o600})
    return case


def logged(umask):
    def case(folder):
        with Machine(folder, RATION_MODE="direct") as machine:
            log = machine.folder / "run.jsonl"
            member = start(machine, umask, RATION_LIMIT="1GiB", RATION_LOG=log)
            member.do("alloc=1m")
            expect("standard error", member.err(), "")
            expect_that(f"its owner may read and write the log: {oct(log.stat().st_mode)}",
                        log.stat().st_mode & 0o600 == 0o600)
    return case


cases = {}
for mask in ("0177", "0777"):
    cases[f"umask {mask}: the next process joins the group"] = shared(mask)
    cases[f"umask {mask}: the log belongs to its owner"] = logged(mask)
main(cases)
