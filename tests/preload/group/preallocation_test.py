#!/usr/bin/env python3
"""Mode pool under a group's limit: a member preallocates what is guaranteed to it, or a part that leaves room; a size that
was asked for shrinks to what is left; and a member returns its own free slabs first."""
import pathlib

from members import MIB, REFUSED, Machine, ended_clean, expect, expect_that
from harness import GIB, main, of_type, read_log

LIMIT = GIB
SHARED = {"RATION_BACKING": "slab", "RATION_GROUP": "g", "RATION_GROUP_LIMIT": str(LIMIT), "RATION_MODE": "pool", "RATION_HEADROOM": "0"}
AT_ONCE = {"RATION_PREALLOCATE_AFTER": "0"}
PART = AT_ONCE | {"RATION_PREALLOCATE": "true"}
ALL = AT_ONCE | {"RATION_PREALLOCATE": str(LIMIT)}


def slabs(log):
    return [(one["why"], one["size"]) for one in of_type(read_log(log), "slab_alloc")]


def takes_the_rest(folder, backing):
    """The second of two members gets what the first leaves of the group's limit, and of a slab with a block in it no more."""
    with Machine(folder, **SHARED | {"RATION_BACKING": backing}, **ALL) as machine:
        first, second = (machine.member(RATION_LOG=machine.folder / name, RATION_LIMIT="700MiB") for name in "ab")
        first.do("alloc=1m")
        second.do("alloc=1m alloc=300m")
        expect("reserved", machine.reserved(), {first.pid: 700 * MIB, second.pid: 324 * MIB})
        if backing == "slab":
            expect("refused", second("alloc=100m"), REFUSED)
            expect("reserved", machine.reserved(), {first.pid: 700 * MIB, second.pid: 324 * MIB})
        ended_clean(machine)
    return machine.folder


def shrinks(folder):
    logs = takes_the_rest(folder, "slab")
    expect("slabs of the first", slabs(logs / "a"), [("preallocate", 700 * MIB)])
    expect("slabs of the second", slabs(logs / "b"), [("preallocate", 324 * MIB)])


def without_process_limit(folder):
    """A size beyond the group's limit becomes that limit."""
    with Machine(folder, **SHARED, **AT_ONCE, RATION_PREALLOCATE="2GiB") as machine:
        member = machine.member(RATION_LOG=machine.folder / "a")
        member.do("alloc=1m alloc=900m")
        ended_clean(machine)
    expect("slabs", slabs(machine.folder / "a"), [("preallocate", LIMIT)])


def four_parts(folder):
    """Four members preallocate 300 MiB at the same time: one gets what is left, and each gets a block."""
    with Machine(folder, **SHARED, **ALL, RATION_LIMIT="300MiB") as machine:
        members = [machine.member() for _ in range(4)]
        expect("codes", at_once(members), [0] * 4)
        expect("reserved", sorted(machine.reserved().values()), [124 * MIB] + [300 * MIB] * 3)
        ended_clean(machine)


def four_wholes(folder):
    """Four members preallocate the whole limit at the same time: one gets all of it."""
    with Machine(folder, **SHARED, **ALL) as machine:
        members = [machine.member() for _ in range(4)]
        expect("codes", sorted(at_once(members)), [0, REFUSED, REFUSED, REFUSED])
        expect("reserved", sorted(machine.reserved().values()), [0, 0, 0, LIMIT])
        ended_clean(machine)


def leaves_a_context(folder):
    """Of a process without Ration, which cannot ask for memory; where no headroom was asked for, also beyond 512 MiB."""
    for mode in ({"RATION_BACKING": "vmm"}, {"RATION_BACKING": "slab"}):
        (apart := pathlib.Path(folder) / "_".join(mode.values())).mkdir()
        with Machine(apart, devices="8GiB", RATION_LIMIT="100%", **mode) as machine:
            machine.simulated["SIMCUDA_CONTEXT_BYTES"] = str(600 * MIB)
            machine.member().do("alloc=128m")
            with_context = machine.watcher()
            left = with_context.memory()[0]
            expect_that(f"{mode}: it is preallocated, {left // MIB} MiB are left", left < 400 * MIB)


def at_once(members):
    for member in members:
        member.send("alloc=1k")
    return [int(member.read().rsplit(": ", 1)[1]) for member in members]


def releases_own_slabs(folder):
    """The limit is reached by the member's own free slabs: they are released, and the request succeeds."""
    with Machine(folder, **SHARED, RATION_PREALLOCATE="false") as machine:
        member = machine.member(RATION_LOG=machine.folder / "a")
        member.do("alloc=500m free=0 context=0")
        other = machine.member()
        other.do("alloc=400m")
        member.do("alloc=600m")
        expect_that("sum of the reservations", sum(machine.reserved().values()) <= LIMIT)
        expect("over the limit", member("alloc=100m"), REFUSED)
        ended_clean(machine)
    records = read_log(machine.folder / "a")
    trim, = of_type(records, "trim")
    expect_that(f"trim {trim}", trim["slabs"] == 1 and 500 * MIB <= trim["bytes"] <= 504 * MIB)
    expect("oom", [one["reason"] for one in of_type(records, "oom")], ["group"])


def granules(folder):
    """With granules a member preallocates what the group has left, and free granules go back before a refusal."""
    takes_the_rest(folder, "vmm")
    (apart := pathlib.Path(folder) / "apart").mkdir()
    with Machine(apart, **SHARED | {"RATION_BACKING": "vmm", "RATION_PREALLOCATE": "false"}) as machine:
        other, member = machine.member(), machine.member(RATION_LOG=machine.folder / "c")
        other.do("alloc=400m")
        member.do("alloc=500m free=0 context=0 alloc=600m")
        expect_that("sum of the reservations", sum(machine.reserved().values()) <= LIMIT)
        expect("over the limit", member("alloc=100m"), REFUSED)
        ended_clean(machine)
    trim, *_ = of_type(read_log(machine.folder / "c"), "trim")
    expect_that(f"trim {trim}", trim["slabs"] == 0 and 476 * MIB <= trim["bytes"] <= 504 * MIB)


def in_parts(backing):
    """Alone a member may use all of the limit, and preallocates at most half of it. Others are served whatever it does."""
    def case(folder):
        with Machine(folder, **SHARED | {"RATION_BACKING": backing}, **PART) as machine:
            first = machine.member(RATION_LOG=machine.folder / "a")
            first.do("alloc=1m")
            taken = machine.reserved()[first.pid]
            expect_that(f"{taken} bytes at once", taken <= LIMIT // 2 and (taken > 64 * MIB) == (backing == "vmm"))
            first.do("alloc=900m free=1 context=0")
            second = machine.member()
            second.do("alloc=500m")
            expect_that("the limit", sum(machine.reserved().values()) <= LIMIT)
            ended_clean(machine)
    return case


def what_is_guaranteed(backing):
    """A member preallocates its guarantee, however many there are."""
    def case(folder):
        with Machine(folder, **SHARED | {"RATION_BACKING": backing}, **PART, RATION_GUARANTEE="256MiB") as machine:
            members = [machine.member() for _ in range(4)]
            for member in members:
                member.do("alloc=1m")
            expect("reserved", machine.reserved(), {member.pid: 256 * MIB for member in members})
            for member in members:
                member.do("alloc=250m")
            expect("beyond it", [member("alloc=8m") for member in members], [REFUSED] * 4)
            ended_clean(machine)
    return case


main({f"{backing}: a part": in_parts(backing) for backing in ("vmm", "slab")} |
     {f"{backing}: what is guaranteed": what_is_guaranteed(backing) for backing in ("vmm", "slab")} |
     {"granules": granules, "the preallocated slab is what the group has left": shrinks,
      "without a process limit the slab is the group limit": without_process_limit,
      "four preallocate at once": four_parts, "four preallocate the whole limit at once": four_wholes,
      "own free slabs are released before a refusal": releases_own_slabs,
      "the headroom leaves room for a context": leaves_a_context})
