#!/usr/bin/env python3
"""`ration set`: limits and guarantees change while programs run; queries follow; under less than is held nothing more is
granted, and what is not used goes back."""
import json
import subprocess

from members import MIB, MODES, RATION, REFUSED, Machine, ended_clean, expect, expect_that
from harness import GIB, HANG, main

GROUP = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB"}
POOLS = {"direct": MODES["direct"], "slab": {"RATION_MODE": "pool", "RATION_BACKING": "slab", "RATION_PREALLOCATE": "false"},
         "vmm": {"RATION_MODE": "pool", "RATION_BACKING": "vmm"}, "async": {"RATION_MODE": "async"}}


def ended_set(machine, *words, state=None):
    environment = machine.environment(ration=False) | {"RATION_STATE_DIR": str(state or machine.state)}
    return subprocess.run([RATION, "set", *map(str, words)], env=environment, capture_output=True, text=True, timeout=HANG, check=False)


def ration_set(machine, target, *flags, status=0, state=None):
    done = ended_set(machine, target, *flags, "--json", state=state)
    expect(f"status of {target} {flags}: {done.stdout} {done.stderr}", done.returncode, status)
    return json.loads(done.stdout) if status != 2 else done.stderr


def of_a_group(mode):
    def case(folder):
        with Machine(folder, **POOLS[mode], **GROUP) as machine:
            one, two = machine.member(), machine.member()
            one.do("alloc=300m")
            two.do("alloc=300m")
            expect("over it", one("alloc=500m"), REFUSED)
            told = ration_set(machine, "g", "--limit", "2GiB")
            expect("what it tells", [row["limit"] for row in told["devices"]], [2 * GIB])
            one.do("alloc=500m")
            expect("total", one.memory()[1], 2 * GIB)
            ration_set(machine, "g", "--limit", "512MiB")
            for member in (one, two):
                expect("nothing more", member("alloc=20m"), REFUSED)
                expect("free and total", member.memory(), (0, 512 * MIB))
            expect("what ps shows", [row["limit"] for row in machine.ps()["groups"] if row["group"] == "g"], [512 * MIB])
            one.do("free=2 free=0")
            one.do("alloc=20m")
            late = machine.member()
            expect("of one that joins later", late.memory()[1], 512 * MIB)
            ration_set(machine, "g", "--limit", "default")
            expect("what they state", one.memory()[1], GIB)
            one.do("alloc=500m")
            ended_clean(machine)
    return case


def before_the_first(mode, begun, later, size, answer):
    """A limit that is set before the first allocation holds for it, though a pool takes memory then."""
    def case(folder):
        with Machine(folder, **POOLS[mode], RATION_LIMIT=begun) as machine:
            one = machine.member()
            ended_set(machine, one.pid, "--limit", later)
            expect(f"{size} of {later}, set in place of {begun}", one(f"alloc={size}"), answer)
            ended_clean(machine)
    return case


def of_a_process(mode):
    def case(folder):
        with Machine(folder, **POOLS[mode], RATION_LIMIT="1GiB") as machine:
            one = machine.member()
            one.do("alloc=300m")
            ration_set(machine, one.pid, "--limit", "2GiB")
            one.do("alloc=900m")
            expect("total", one.memory()[1], 2 * GIB)
            told = ration_set(machine, one.pid, "--limit", "1GiB")
            listens = mode != "direct"  # a thread of the library
            expect_that(f"it holds more: {told}", told["outcome"] == ("done" if listens else "pending"))
            expect("in force", told["devices"][0]["limit"], GIB if listens else 2 * GIB)
            expect("nothing more", one("alloc=20m"), REFUSED)
            expect("what ps shows", [row["limit"] for row in machine.ps()["processes"]], [GIB])
            one.do("free=1")
            one.do("alloc=600m")
            ration_set(machine, one.pid, "--limit", "25%")
            expect("a share of the device", one.memory()[1], GIB)
            ended_clean(machine)
    return case


def what_is_idle(backing):
    """What a member holds and does not use goes back, also while it makes no call, and is not served again."""
    def case(folder):
        settings = POOLS[backing] | {"RATION_HEADROOM": "0", "RATION_PREALLOCATE": "1GiB", "RATION_ASYNC_PREALLOCATE": "0",
                                     "RATION_PREALLOCATE_AFTER": "0", "RATION_LIMIT": "1GiB"}
        with Machine(folder, **settings) as machine:
            one = machine.member()
            one.do("alloc=10m alloc=600m free=1")
            ration_set(machine, one.pid, "--limit", "256MiB")
            if backing != "slab":
                for _ in range(1000):
                    held = [row["reserved_bytes"] for row in machine.ps()["processes"]][0]
                    if held <= 256 * MIB:
                        break
                expect_that(f"what it keeps: {held}", held <= 256 * MIB)
            expect("beyond it", one("alloc=300m"), REFUSED)
            one.do("alloc=200m")
            expect("beyond it", one("alloc=100m"), REFUSED)
            for again in range(3):
                one.do(f"alloc=10m free={5 + again}")
            ended_clean(machine)
    return case


def guarantees(folder):
    with Machine(folder, **POOLS["vmm"], **GROUP) as machine:
        one, two = machine.member(), machine.member()
        one.do("alloc=100m")
        two.do("alloc=1m")
        told = ration_set(machine, one.pid, "--guarantee", "500MiB", "--limit", "800MiB")
        expect("both", (told["devices"][0]["guarantee"], told["devices"][0]["limit"]), (500 * MIB, 800 * MIB))
        expect("more than it leaves", two("alloc=530m"), REFUSED)
        told = ration_set(machine, two.pid, "--guarantee", "600MiB", status=1)
        expect("one that does not fit", told["outcome"], "refused")
        one.do("alloc=390m")
        said = ration_set(machine, one.pid, "--limit", "400MiB", status=2)
        expect_that(f"a limit below it: {said}", "a guarantee of 500MiB" in said and "400MiB" in said)
        said = ration_set(machine, one.pid, "--limit", "10%", status=2)
        expect_that(f"a share below it: {said}", "a guarantee of 500MiB" in said)
        ration_set(machine, one.pid, "--guarantee", "default")
        two.do("alloc=530m")
        ended_clean(machine)


def where_it_is_used(folder):
    """A guarantee without a device is one on the devices that the process uses."""
    with Machine(folder, devices="2x4GiB", **POOLS["vmm"], **GROUP) as machine:
        one, two = machine.member(), machine.member(device=1)
        one.do("alloc=1m")
        two.do("alloc=1m")
        told = ration_set(machine, one.pid, "--guarantee", "500MiB")
        expect("devices", [row["guarantee"] for row in told["devices"]], [500 * MIB])
        expect("of the group", sorted(group["guaranteed_bytes"] for group in machine.ps()["groups"]), [0, 500 * MIB])
        ended_clean(machine)


def freed_later(backing):
    """What is freed under a limit below what is held goes back, though nobody asks for it."""
    def case(folder):
        with Machine(folder, **POOLS[backing] | {"RATION_PREALLOCATE": "false", "RATION_LIMIT": "2GiB"}) as machine:
            one = machine.member()
            one.do("alloc=10m alloc=900m")
            ration_set(machine, one.pid, "--limit", "256MiB")
            one.do("free=1")
            for _ in range(1000):
                held = [row["reserved_bytes"] for row in machine.ps()["processes"]][0]
                if held <= 256 * MIB:
                    break
            expect_that(f"what it keeps: {held}", held <= 256 * MIB)
            ended_clean(machine)
    return case


def below_what_is_guaranteed(folder):
    with Machine(folder, **MODES["direct"], **GROUP) as machine:
        one = machine.member(RATION_GUARANTEE="600MiB")
        one.do("alloc=1m")
        said = ration_set(machine, "g", "--limit", "0.5g", status=1)
        expect("outcome", said["outcome"], "refused")
        expect("nothing changed", one.memory()[1], GIB)
        ration_set(machine, "g", "--limit", "700MiB")
        ended_clean(machine)


def all_devices_or_none(folder):
    """A guarantee that one of two devices does not leave is refused on both, and later orders say nothing of it."""
    with Machine(folder, devices="2x4GiB", **POOLS["vmm"], RATION_GROUP="g", RATION_GROUP_LIMIT="0=1GiB,1=512MiB",
                 RATION_GUARANTEE="100MiB") as machine:
        one = machine.member()
        one.do("alloc=1m")
        told = ration_set(machine, one.pid, "--guarantee", "800MiB", status=1)
        expect("outcome", told["outcome"], "refused")
        expect("guarantees", [row["guarantee"] for row in machine.ps()["processes"]], [100 * MIB] * 2)
        told = ration_set(machine, one.pid, "--limit", "700MiB")
        expect("another order", told["outcome"], "done")
        ended_clean(machine)


def of_one_device(folder):
    """A size for one device leaves the others as they are; a device is named by its UUID, which all processes share."""
    with Machine(folder, devices="2x4GiB", **MODES["direct"], RATION_GROUP="g", RATION_GROUP_LIMIT="1GiB", RATION_LIMIT="3GiB") as machine:
        one = machine.member()
        one.do("alloc=1m")
        first, second = (row["uuid"] for row in ration_set(machine, "g", "--limit", "2GiB")["devices"])
        for target, device, limits in (("g", second, {first: 2 * GIB, second: 512 * MIB}), (one.pid, second, {first: 3 * GIB}), (one.pid, first, {first: 512 * MIB})):
            ration_set(machine, target, "--limit", f"{device}=512MiB")
            one.do("alloc=1m")  # takes note of it
            rows = machine.ps()["groups" if target == "g" else "processes"]
            expect(f"limits of {target}", {row["uuid"]: row["limit"] for row in rows if row["group"] == "g"}, limits)
        for wrong, words in (("0=1GiB", "number their devices differently"), ("GPU-00ff=1GiB", "GPU-00ff")):
            expect_that(wrong, words in ration_set(machine, "g", "--limit", wrong, status=2))
        ended_clean(machine)


def guaranteed_job(machine, guarantee, mebibytes):
    """(job, the process ID of what `ration run` started), which holds so much."""
    job = machine.ration_run("--group", "g", "--group-limit", "1GiB", "--guarantee", guarantee)
    job.do(f"init context=0 alloc={mebibytes}m")
    pid, = [row["pid"] for row in machine.ps()["processes"] if row["reserved_bytes"] == mebibytes * MIB]
    return job, pid


def of_a_run(folder):
    """The process ID of what `ration run` started stands for its guarantee."""
    with Machine(folder, **MODES["direct"]) as machine:
        other = machine.member(**GROUP)
        job, pid = guaranteed_job(machine, "200MiB", 10)
        told = ration_set(machine, pid, "--guarantee", "700MiB")
        expect("outcome", told["outcome"], "done")
        expect("more than it leaves", other("alloc=400m"), REFUSED)
        job.do("alloc=690m")
        ended_clean(machine)


def less_of_a_run(folder):
    """What its processes hold of a guarantee stays theirs, and counted, until they free it."""
    with Machine(folder, **MODES["direct"]) as machine:
        other = machine.member(**GROUP)
        job, pid = guaranteed_job(machine, "700MiB", 600)
        told = ration_set(machine, pid, "--guarantee", "1MiB")
        expect("outcome", told["outcome"], "done")
        expect("more than the limit leaves", other("alloc=450m"), REFUSED)
        other.do("alloc=400m")
        group, = [row for row in machine.ps()["groups"] if row["group"] == "g"]
        expect_that(f"reserved, claimed and limit: {group}", group["reserved_bytes"] <= group["claimed_bytes"] <= GIB)
        job.do("free=0")
        for _ in range(1000):
            group, = [row for row in machine.ps()["groups"] if row["group"] == "g"]
            if group["claimed_bytes"] <= 401 * MIB:
                break
        expect_that(f"once it is free: {group}", group["claimed_bytes"] <= 401 * MIB)
        other.do("alloc=600m")
        ended_clean(machine)


def summary_of_a_run(folder):
    """It names the limit that holds at the end, and that it is another one."""
    with Machine(folder, **MODES["direct"]) as machine:
        for first, then, shown in (("1GiB", "512MiB", "512MiB"), ("512MiB", "1GiB", "1.00GiB"), ("1GiB", "1GiB", "1.00GiB")):
            job = machine.ration_run("--limit", first)
            job.do("init context=0 alloc=10m")
            pid, = [row["pid"] for row in machine.ps()["processes"] if row["reserved_bytes"] == 10 * MIB]
            ration_set(machine, pid, "--limit", then)
            job.do("alloc=20m")
            job.ends()
            expect_that(f"the summary after {first}, {then}: {job.err()}", f" of the limit of {shown} (set while it ran)\n" in job.err())
        job = machine.ration_run("--group", "g", "--group-limit", "1GiB")
        job.do("init context=0 alloc=10m")
        ration_set(machine, "g", "--limit", "2GiB")
        job.ends()
        expect_that(f"the summary of a group: {job.err()}", " of the group g's limit of 2.00GiB " in job.err())
        ended_clean(machine)


def in_words(folder):
    with Machine(folder, **MODES["direct"], **GROUP) as machine:
        one = machine.member()
        one.do("alloc=1m")
        for limit, words in (("2GiB", "limit 2.00GiB, 1MiB held"), ("1TiB", "limit 4.00GiB (all that the device has), 1MiB held")):
            done = ended_set(machine, "g", "--limit", limit)
            expect_that(f"{limit}: {done.stdout}{done.stderr}", words in done.stdout and done.returncode == 0)
        ended_clean(machine)


def mistakes(folder):
    with Machine(folder, **MODES["direct"], **GROUP) as machine:
        one, two = machine.member(), machine.member()
        one.do("alloc=1m")
        two.do("alloc=1m")
        for target, flags, words in (("nobody", ["--limit", "1GiB"], 'no process or group "nobody"'),
                                     ("999999999", ["--limit", "1GiB"], "no process or group"), ("g", [], "nothing to set"),
                                     ("g", ["--limit", "1"], "--limit 1"), ("g", ["--guarantee", "1GiB"], "a process's, not a group's"),
                                     ("-", ["--limit", "1GiB"], "no process or group"), ("0", ["--limit", "1GiB"], 'no process or group "0"')):
            said = ration_set(machine, target, *flags, status=2)
            expect_that(f"{target} {flags}: {said}", words in said and said.count("\n") == 1)
        said = ration_set(machine, "g", "--limit", "1GiB", status=2, state=machine.folder / "another")
        expect_that(f"in another folder: {said}", "no process or group" in said)
        expect("nothing changed", one.memory()[1], GIB)
        ended_clean(machine)


main({f"{mode}: lower before the first": before_the_first(mode, "400MiB", "100MiB", "191m", REFUSED) for mode in POOLS} |
     {f"{mode}: higher before the first": before_the_first(mode, "56MiB", "130MiB", "129m", 0) for mode in POOLS} | {f"{mode}: of a group": of_a_group(mode) for mode in POOLS} | {f"{mode}: of a process": of_a_process(mode) for mode in POOLS} |
     {f"{backing}: what is idle": what_is_idle(backing) for backing in ("vmm", "slab", "async")} |
     {f"{backing}: freed later": freed_later(backing) for backing in ("vmm", "slab", "async")} |
     {"below what is guaranteed": below_what_is_guaranteed, "all devices or none": all_devices_or_none, "of one device": of_one_device, "guarantees": guarantees, "where it is used": where_it_is_used, "of a run": of_a_run, "less of a run": less_of_a_run, "summary of a run": summary_of_a_run, "in words": in_words, "mistakes": mistakes})
