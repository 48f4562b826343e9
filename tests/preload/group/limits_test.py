#!/usr/bin/env python3
"""The limits that group members state: the smallest applies while its member lives, the last
one while the group has members; each device has its own."""
import pathlib

from members import MIB, MODES, REFUSED, Machine, ended_clean, expect, expect_that
from harness import GIB, main, read_log

DIRECT = MODES["direct"]


def limit_of(machine, device=0):
    return [row["limit"] for row in machine.ps()["groups"] if row["group"] == "g"][device]


def smallest(ending):
    def case(folder):
        with Machine(folder, **DIRECT, RATION_GROUP="g") as machine:
            wide = machine.member(RATION_GROUP_LIMIT="1GiB")
            wide.do("alloc=300m")
            narrow = machine.member(RATION_GROUP_LIMIT="512MiB")
            silent = machine.member()
            narrow.do("alloc=100m")
            expect("the limit", limit_of(machine), 512 * MIB)
            for member in (wide, narrow, silent):
                expect("over the smallest", member("alloc=200m"), REFUSED)
            late = machine.member(RATION_GROUP_LIMIT="2GiB")
            expect("of a later member", late("alloc=200m"), REFUSED)
            for member, stated in ((wide, 0), (narrow, 1), (silent, 0), (late, 1)):
                expect(f"warnings: {member.err()}", member.err().count("the smallest limit given"), stated)
            expect_that(f"warning: {late.err()}", late.err().startswith(
                "ration: group 'g' uses the smallest limit given, 512MiB on device 0 (asked here: 2.00GiB)\n"))
            expect_that(f"warning: {narrow.err()}", narrow.err().startswith("ration: group 'g' now uses the smallest "
                        "limit given, 512MiB on device 0 (another member asked for 1.00GiB)\n"))
            ending(narrow)
            wide.do("alloc=700m")
            expect("the larger limit applies again", late("alloc=100m"), REFUSED)
            expect("the limit", limit_of(machine), GIB)
            ended_clean(machine)
    return case


def last_one(folder):
    """The limit of a group does not end with the member that stated it, but with the group."""
    with Machine(folder, **DIRECT, RATION_GROUP="g") as machine:
        for ending in (lambda member: member.end(), lambda member: member.kill()):
            stating, silent = machine.member(RATION_GROUP_LIMIT="1GiB"), machine.member()
            stating.do("alloc=300m")
            ending(stating)
            expect("beyond the limit", silent("alloc=1100m"), REFUSED)
            silent.do("alloc=900m")
            expect("the limit", limit_of(machine), GIB)
            expect("beyond the limit, in a later member", machine.member()("alloc=200m"), REFUSED)
            for member in machine.members:
                if member.process.poll() is None:
                    ending(member)
            fresh = machine.member()  # of another group of that name
            fresh.do("alloc=1100m")
            expect("no limit", limit_of(machine), None)
            ending(fresh)


def by_device(folder):
    """A limit belongs to the UUID of a device, not to its ordinal in a process."""
    with Machine(folder, devices="2x4GiB", **DIRECT, RATION_GROUP="g") as machine:
        straight = machine.start(RATION_GROUP_LIMIT="0=1GiB,1=2GiB")
        crossed = machine.start(RATION_GROUP_LIMIT="0=2GiB,1=1GiB", CUDA_VISIBLE_DEVICES="1,0")
        straight.do("init context=0 alloc=600m context=1 alloc=600m")
        crossed.do("init context=1 alloc=400m")
        expect("over 1 GiB of the first device", crossed("alloc=100m"), REFUSED)
        crossed.do("context=0 alloc=1400m")
        expect("over 2 GiB of the second device", crossed("alloc=100m"), REFUSED)
        expect("over 2 GiB of the second device", straight("alloc=100m"), REFUSED)
        straight.do("current=0")
        expect("over 1 GiB of the first device", straight("alloc=100m"), REFUSED)
        rows = sorted((row["limit"], row["reserved_bytes"]) for row in machine.ps()["groups"])
        expect("rows of the group", rows, [(GIB, 1000 * MIB), (2 * GIB, 2000 * MIB)])
        expect("warnings", straight.err() + crossed.err(), "")
        ended_clean(machine)


def by_ordinal(folder):
    """Equal ordinals for crossed devices state two limits for each device: the smaller applies to both, with a warning."""
    with Machine(folder, devices="2x4GiB", **DIRECT, RATION_GROUP="g", RATION_GROUP_LIMIT="0=1GiB,1=2GiB") as machine:
        straight, crossed = machine.start(), machine.start(CUDA_VISIBLE_DEVICES="1,0")
        straight.do("init context=0 context=1")
        crossed.do("init context=0 alloc=1000m")
        expect("over 1 GiB", crossed("alloc=100m"), REFUSED)
        expect("over 1 GiB", straight("alloc=100m"), REFUSED)
        straight.do("current=0 alloc=1000m")
        expect(f"warnings, one for each device: {crossed.err()}", crossed.err().count("the smallest limit given"), 2)
        ended_clean(machine)


def in_the_log(folder):
    """The first line of a log has the limit of a group that holds, not the one that its process states."""
    with Machine(folder, **DIRECT, RATION_GROUP="g") as machine:
        narrow = machine.member(RATION_GROUP_LIMIT="512MiB")
        for name, settings, held in (("group", {"RATION_GROUP_LIMIT": "1GiB"}, {"group_limit": 512 * MIB}),
                                     ("alone", {"RATION_GROUP": ""}, {})):
            log = pathlib.Path(folder) / name
            machine.member(RATION_LOG=str(log), **settings).end()
            device = read_log(log)[0]["devices"][0]
            expect(name, {key: value for key, value in device.items() if key.startswith("group")}, held)
        narrow.end()


main({"the log's first line": in_the_log, "the limit lasts as long as the group": last_one, "the smallest limit applies until its member ends": smallest(lambda member: member.end()),
      "the smallest limit applies until its member is killed": smallest(lambda member: member.kill()),
      "each device has its own limit, by UUID": by_device, "crossed ordinals": by_ordinal})
