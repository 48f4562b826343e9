#!/usr/bin/env python3
"""A member that preallocated more than it uses gives the rest to a member that needs it; and what a pool keeps of free
memory where RATION_RELEASE_THRESHOLD asks it to."""
import pathlib

from members import MIB, REFUSED, Machine, ended_clean, expect, expect_that
from harness import GIB, main, of_type, read_log

LIMIT = GIB
GREEDY = {"RATION_MODE": "pool", "RATION_BACKING": "vmm", "RATION_HEADROOM": "0", "RATION_PREALLOCATE_AFTER": "0"}
GROUP = GREEDY | {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": str(LIMIT), "RATION_PREALLOCATE": str(LIMIT)}


def sleeping_member(folder):
    """While the first makes no call at all, whether its memory is preallocated granules or slabs."""
    for backing in ("vmm", "slab"):
        (apart := folder_of(folder, backing)).mkdir()
        with Machine(apart, **GROUP | {"RATION_BACKING": backing}) as machine:
            first, second = machine.member(RATION_LOG=machine.folder / "a"), machine.member()
            first.do("alloc=600m free=0 context=0")
            expect("all of it is preallocated", machine.reserved(), {first.pid: LIMIT})
            served(second, "alloc=300m")
            expect_that(f"the limit {machine.reserved()}", sum(machine.reserved().values()) <= LIMIT)
            first.do("alloc=1m use=0")
            ended_clean(machine)
        expect_that("its thread gave it", "wish" in {one["api"] for one in of_type(read_log(apart / "a"), "trim")})


def sleeping_in_mode_async(folder):
    """What the driver's pool keeps of it, the program's own pool included."""
    group = {"RATION_MODE": "async", "RATION_GROUP": "g", "RATION_GROUP_LIMIT": str(LIMIT)}
    with Machine(folder, **group) as machine:
        first = machine.member(RATION_LOG=machine.folder / "a")
        first.do("alloc=300m alloc=300m free=0 context=0")
        expect_that("the pool keeps it", machine.reserved()[first.pid] >= 600 * MIB)
        second = machine.member()
        served(second, "alloc=600m")
        expect_that(f"the limit {machine.reserved()}", sum(machine.reserved().values()) <= LIMIT)
        first.do("use=1 alloc=1m")
        ended_clean(machine)


def used_by_a_sleeping_member(folder):
    """Only what holds nothing is given."""
    with Machine(folder, **GROUP) as machine:
        first, second = machine.member(), machine.member(RATION_LOG=machine.folder / "b")
        first.do("alloc=600m use=0")
        expect("more than is unused", second("alloc=500m"), REFUSED)
        served(second, "alloc=300m")
        first.do("use=0")
        ended_clean(machine)
    reasons = {one["reason"] for one in of_type(read_log(pathlib.Path(folder) / "b"), "oom")}
    expect("the refusal's reason", reasons, {"group"})


def folder_of(folder, name):
    return pathlib.Path(folder) / name.replace("=", "_")


def served(member, op):
    """At once, or, where the machine is too busy for the other member to answer in time, at a later try."""
    expect_that(f"{op} is served", any(member(op) == 0 for _ in range(30)))


def working(machine, ops):
    """Two members: the first has done `ops`, and asks for its free memory again and again."""
    first, second = machine.member(), machine.member()
    first.do(ops)
    first.send("watch")
    expect("the first works", first.read(), "watching")
    return first, second


def end_work(first, op):
    """Ends that with an op of the first's, which must succeed."""
    first.send(op)
    expect_that("the end of its work", first.read().endswith("watch: 0"))
    expect_that(f"{op} of the first", first.read().endswith(f"{op}: 0"))


def working_member(folder):
    """While the first works, the second is served."""
    with Machine(folder, **GROUP) as machine:
        first, second = working(machine, "alloc=600m free=0 context=0")
        served(second, "alloc=300m")
        served(second, "alloc=400m")
        end_work(first, "query")
        expect_that(f"the limit {machine.reserved()}", sum(machine.reserved().values()) <= LIMIT)
        ended_clean(machine)


def what_is_used_stays(folder):
    """Only what holds nothing is given."""
    with Machine(folder, **GROUP) as machine:
        first, second = working(machine, "alloc=600m use=0")
        expect("more than is unused", second("alloc=500m"), REFUSED)
        served(second, "alloc=300m")
        end_work(first, "use=0")
        ended_clean(machine)


def neighbours(folder):
    """Without a group the device is what they share."""
    (asleep := folder_of(folder, "asleep")).mkdir()
    with Machine(asleep, **GREEDY) as machine:
        first, second = machine.member(), machine.member()
        first.do("alloc=600m free=0 context=0")
        served(second, "alloc=2g")
        ended_clean(machine)
    with Machine(folder, **GREEDY) as machine:
        first, second = working(machine, "alloc=600m free=0 context=0")
        served(second, "alloc=2g")
        end_work(first, "query")
        ended_clean(machine)


def free_memory(folder):
    """Free memory counts what another member would give: a program takes a part of it, or plans by it."""
    with Machine(folder, **GROUP) as machine:
        first, second = machine.member(), machine.member()
        first.do("alloc=600m free=0 context=0 alloc=64m")
        expect("all of it is preallocated", machine.reserved(), {first.pid: LIMIT})
        second.send("query")
        free = int(second.read().split("free=")[1].split()[0]) // MIB
        expect_that(f"{free} MiB are free", 900 <= free <= 1024 - 64)
        served(second, f"alloc={free}m")
        first.do("use=1")
        ended_clean(machine)


def slow_gift(folder):
    """A member that needs long to give is waited for as long as more comes, here 300 handles of a quarter of a millisecond."""
    with Machine(folder, **GROUP, SIMCUDA_COSTS="cuMemRelease=250") as machine:
        first, second = machine.member(), machine.member()
        first.do("alloc=600m free=0 context=0")
        expect("all at once", second("alloc=600m"), 0)
        ended_clean(machine)


def decimal_limit(folder):
    """Also where the limit of a group is not in whole pages, as 1 GB is not."""
    with Machine(folder, **GROUP | {"RATION_GROUP_LIMIT": "1GB", "RATION_BACKING": "auto"}) as machine:
        first, second = machine.member(), machine.member()
        first.do("alloc=64m")
        served(second, "alloc=512m")
        first.do("use=0")
        ended_clean(machine)


def idle_threshold(folder):
    """Without any further call, too."""
    with Machine(folder, **GROUP, RATION_RELEASE_THRESHOLD="0") as machine:
        member = machine.member()
        member.do("alloc=1m")
        expect_that("what is free goes back", any(machine.reserved()[member.pid] <= 4 * MIB for _ in range(2000)))
        member.do("use=0")
        ended_clean(machine)


def threshold(folder):
    """What is free beyond it goes back once it is clean; the pool keeps as much as it says."""
    for keeps, least, most in ((0, 0, 4), (256, 256, 264), (None, 1024, 1024)):
        (apart := folder_of(folder, str(keeps))).mkdir()
        settings = {} if keeps is None else {"RATION_RELEASE_THRESHOLD": f"{keeps}MiB" if keeps else "0"}
        with Machine(apart, **GROUP, **settings) as machine:
            member = machine.member()
            member.do("alloc=1m alloc=600m free=1 free=0 context=0 synchronize")
            held = machine.reserved()[member.pid] // MIB
            expect_that(f"it keeps {held} MiB with {keeps}", least <= held <= most)
            member.do("alloc=600m use=2")
            ended_clean(machine)


main({"a member that sleeps gives": sleeping_member, "one in mode async gives": sleeping_in_mode_async, "a member that sleeps keeps what it uses": used_by_a_sleeping_member,
      "a member that works gives at once": working_member,
      "what is used stays": what_is_used_stays, "neighbours on a device": neighbours, "a release threshold": threshold,
      "a release threshold while idle": idle_threshold, "free memory": free_memory, "a slow gift": slow_gift, "a group's limit in decimal": decimal_limit})
