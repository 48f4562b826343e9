#!/usr/bin/env python3
"""Processes of one group, with the driver API and the runtime API, stay together within its limit."""
import json
import pathlib
import re
import subprocess

from members import CONTEXT, MIB, MODES, RATION, REFUSED, Machine, ended_clean, expect, expect_that, held_by_device
from harness import GIB, main, of_type, read_log
from log_schema import problem

LIMIT = GIB
SHARED = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": str(LIMIT)}
SLACK = 64 << 10  # of a free figure: rounding of blocks


def least_free(watcher):
    """Ends the watch and returns the least free memory that the watcher saw."""
    watcher.send("")
    return int(re.search(r"least=(\d+) ", watcher.read())[1])


def together(mode, shared=None):
    """By the simulated device they never hold more than the limit, and each refusal is logged with its holders."""
    def case(folder):
        with Machine(folder, **MODES[mode], **(SHARED if shared is None else shared)) as machine:
            monitor, watcher = machine.watcher(), machine.watcher()
            watcher.send("watch=")
            expect("the watcher", watcher.read(), "watching")
            first = machine.member()
            first.do("alloc=400m")
            second = machine.start("group_by_runtime")
            second.do(f"alloc={300 * MIB}")
            log = machine.folder / "third.jsonl"
            third = machine.start(RATION_LOG=log)
            third.do("init context=0 alloc=200m")
            expect("the third's second block", third("alloc=300m"), REFUSED)
            expect("a block of the runtime API", second(f"alloc={300 * MIB}"), REFUSED)
            first.do("free=0 destroy=0")  # a pool keeps freed blocks until its context ends
            second.do(f"alloc={300 * MIB}")
            third.do("free=0 alloc=300m")
            held = held_by_device(monitor, contexts=3)
            expect_that(f"the device holds {held}", 900 * MIB <= held <= LIMIT)
            expect("the ledger's sum is the device's", sum(machine.reserved().values()), held)
            least = least_free(watcher)
            expect_that(f"the device held {4 * GIB - least} at most", 4 * GIB - least - 5 * CONTEXT <= LIMIT)
            expect("statuses", [each.end() for each in (first, second, third)], [0, 0, 0])
            expect_refusal(read_log(log), first.pid, second.pid, third.pid)
            ended_clean(machine)
    return case


def expect_refusal(records, first, second, third):
    """The record of the refusal names the group, its reserved bytes and the holders."""
    oom, = of_type(records, "oom")
    expect("oom", {key: oom.get(key) for key in ("reason", "group", "group_limit", "req", "api")},
           {"reason": "group", "group": "g", "group_limit": LIMIT, "req": 300 * MIB, "api": "cuMemAlloc_v2"})
    expect("holders", [(one["pid"], one["exe"].rsplit("/", 1)[-1]) for one in oom["holders"]],
           [(first, "steps"), (second, "group_by_runtime"), (third, "steps")])
    for one, least in zip(oom["holders"], (400, 300, 200)):
        expect_that(f"reserved of {one}", least * MIB <= one["reserved"] <= (least + 4) * MIB)
    expect("group_reserved", oom["group_reserved"], sum(one["reserved"] for one in oom["holders"]))


def memory_left(mode):
    """cuMemGetInfo: free is what the group has left, total is the smaller of the limits."""
    def case(folder):
        with Machine(folder, **MODES[mode], **SHARED) as machine:
            first, second = machine.member(), machine.member(RATION_LIMIT="800MiB")
            runtime = machine.start("group_by_runtime")
            first.do("alloc=500m")
            expect_free("what the group leaves", second, 524 * MIB, 800 * MIB)
            expect_free("by the runtime", runtime, 524 * MIB, LIMIT)
            second.do("alloc=100m")
            expect_free("to the first", first, 424 * MIB, LIMIT)
            first.kill()
            expect_free("after a death", second, 700 * MIB, 800 * MIB)
            second.do("alloc=600m")
            expect_free("at last", runtime, 324 * MIB, LIMIT)
            ended_clean(machine)
    return case


def expect_free(what, member, free, total):
    seen = member.memory()
    expect(f"{what}: total", seen[1], total)
    expect_that(f"{what}: free {seen[0]}, expected {free}", free - 4 * MIB - SLACK <= seen[0] <= free)


def no_group(folder):
    """Without a group the same processes share no limit."""
    with Machine(folder, RATION_LIMIT=str(LIMIT), **MODES["direct"]) as machine:
        monitor = machine.watcher()
        for member in (machine.member(), machine.member()):
            member.do("alloc=1000m")
        expect("the device holds", held_by_device(monitor, contexts=2), 2000 * MIB)
        ended_clean(machine)


def refused_a_context(folder):
    """A program that does not get its first context: log, summary and report say that it was refused, and who holds the device."""
    for route, group, limit in (("context=0", {}, {}), ("retain=0", {"RATION_GROUP": "g"}, {}), ("green=0", {}, {"RATION_LIMIT": str(LIMIT)})):
        (apart := pathlib.Path(folder) / route).mkdir()
        with Machine(apart, RATION_MODE="direct", **group) as machine:
            machine.simulated["SIMCUDA_CONTEXT_BYTES"] = str(64 * MIB)
            holder = machine.member()
            holder.do("alloc=4000m")
            newcomer = machine.ration_run("--log", str(apart / "log"), "--summary", str(apart / "summary"), **limit)
            newcomer.do("init")
            expect(route, newcomer(route), REFUSED)
            newcomer.ends()
            refused = of_type(read_log(apart / "log"), "oom")
            expect("the log", [(one["reason"], one["dev"], one["device_free"], [each["pid"] for each in one["holders"]]) for one in refused],
                   [("device", 0, None, [holder.pid])])
            expect("no problem with it", [problem(one) for one in refused], [None])
            held = f"steps (pid {holder.pid}) held 3.91GiB"
            expect_that(f"the summary: {newcomer.err()}", "1 refused: 1 because the device was full" in newcomer.err() and held in newcomer.err())
            of_device = json.loads((apart / "summary").read_text())["processes"][0]["devices"][0]
            expect("its holders", [each["pid"] for each in of_device["holders"]], [holder.pid])
            report = subprocess.run([RATION, "report", apart / "log"], capture_output=True, text=True, check=True).stdout
            expect_that(f"the report: {report}", ": 1 call of cu" in report and "REFUSED on device 0" in report and "the device was full" in report and
                        "only the driver knows how much was missing" in report and f"steps (pid {holder.pid}) held 3.91GiB" in report)
            ended_clean(machine)


CASES = {f"mode {mode}: together within the limit": together(mode) for mode in MODES}
CASES |= {f"mode {mode}: free is what the group leaves": memory_left(mode) for mode in MODES}
main(CASES | {"a context that was refused": refused_a_context, "without a group the sum is not limited": no_group})
