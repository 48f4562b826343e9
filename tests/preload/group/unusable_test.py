#!/usr/bin/env python3
"""An unusable ledger: a process with a group is refused every allocation with one message, and `ration run` starts none; others are
not affected."""
import os
import struct

from members import MODES, REFUSED, Machine, expect, expect_that
from harness import main

GROUP = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB"}
NO_GROUP = {"RATION_LIMIT": "1GiB"}
VERSION_AT = 8  # of a group's file (ledger/shared_layout.h)


def group_writable(machine):
    machine.state.mkdir()
    machine.state.chmod(0o770)


def noise(machine):
    machine.state.mkdir(mode=0o700)
    for name in ("group-g", "ungrouped"):
        (machine.state / name).write_bytes(os.urandom(64 << 10))
        (machine.state / name).chmod(0o600)


def newer(machine):
    member, other = machine.member(**GROUP), machine.member(**NO_GROUP)
    files = {path.name: bytearray(path.read_bytes()[:1 << 20]) for path in machine.state.iterdir()}
    member.kill()
    other.kill()
    machine.ps()
    expect("files", sorted(files), ["group-g", "ungrouped"])
    for name, contents in files.items():
        version, = struct.unpack_from("<I", contents, VERSION_AT)
        struct.pack_into("<I", contents, VERSION_AT, version + 1)
        (machine.state / name).write_bytes(contents)
        (machine.state / name).chmod(0o600)


def a_file(machine):
    (machine.folder / "plain").write_text("")
    machine.state = machine.folder / "plain" / "state"


def a_link(machine):
    machine.state = machine.folder / "link"
    machine.state.symlink_to(machine.folder / "nowhere")


def unusable(break_it, why, mode):
    def case(folder):
        with Machine(folder, **MODES[mode]) as machine:
            break_it(machine)
            given, other = machine.member(**GROUP), machine.member(**NO_GROUP)
            for op in ("alloc=1", "alloc=100m", "alloc=1k"):
                expect(op, given(op), REFUSED)
            line, = given.err().splitlines()
            expect_that(f"the line: {line}", line.startswith("ration: group 'g' cannot be joined, so every allocation is refused: ")
                        and str(machine.state) in line and why in line)
            other.do("alloc=1 alloc=100m free=0 alloc=900m")
            expect("the other's code", other("alloc=100m"), REFUSED)
            expect("the other says", other.err(), "")
            expect("statuses", [given.end(), other.end()], [0, 0])
    return case


def refused_at_the_start(break_it, why):
    """`ration run` starts nothing, however the group is named."""
    def case(folder):
        with Machine(folder) as machine:
            break_it(machine)
            for flags, settings in (("--group", "g", "--group-limit", "1GiB"), {}), ((), GROUP), (("--group-tree=1GiB",), {}):
                run = machine.ration_run(*flags, **settings)
                if flags == ("--group-tree=1GiB",) and break_it in (noise, newer):  # files of other groups
                    run.ends()
                    continue
                expect(f"status of {flags} {settings}", run.process.wait(), 125)
                line, = run.err().splitlines()
                expect_that(f"the line: {line}", line.startswith("ration: run: ") and why in line and str(machine.state) in line
                            and " cannot be joined, so every allocation would be refused: " in line)
            machine.ration_run("--limit", "1GiB").ends()
    return case


BREAKAGES = {"a folder that others may write to": (group_writable, "other users may write to it"), "noise": (noise, ""), "a newer layout": (newer, "version"),
        "a folder below a file": (a_file, ""), "a link": (a_link, "link")}
main({f"{name}, mode {mode}": unusable(*way, mode) for name, way in BREAKAGES.items() for mode in MODES} |
     {f"{name}, ration run": refused_at_the_start(*way) for name, way in BREAKAGES.items()})
