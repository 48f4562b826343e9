#!/usr/bin/env python3
"""Sixteen members of random demand, killed and replaced at random, while `ration set` changes their limit: it is never
exceeded, nobody is refused within its guarantee, and the books agree with the device."""
import os
import random
import subprocess
import sys

from members import CONTEXT, MIB, RATION, REFUSED, Machine, ended_clean, expect, expect_that, held_by_device
from harness import GIB, HANG, main

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 150
MEMBERS = 16
LIMIT = 4 * GIB
STEP = 2 * MIB
WAYS = [{"RATION_MODE": "direct"}, {"RATION_MODE": "pool", "RATION_BACKING": "vmm"},
        {"RATION_MODE": "pool", "RATION_BACKING": "slab", "RATION_PREALLOCATE": "false"},
        {"RATION_MODE": "async", "RATION_ASYNC_PREALLOCATE": "-1"}]


class Demand:
    """One member, and what it must hold."""

    def __init__(self, machine, chance, way):
        self.guarantee = chance.choice([0, 0, chance.randint(1, 100) * STEP])
        settings = {"RATION_GUARANTEE": str(self.guarantee)} if self.guarantee else {}
        self.way = way
        self.member = machine.member(RATION_GROUP="g", RATION_GROUP_LIMIT=str(LIMIT), **way, **settings)
        self.blocks, self.live, self.count = {}, 0, 0
        self.is_refused_for_good = "cannot guarantee" in self.member.err()

    def begin(self, chance):
        """Sends one op."""
        self.number = self.bytes = None
        if self.blocks and chance.random() < 0.45:
            self.number = chance.choice(list(self.blocks))
            self.op = f"free={self.number}"
        else:
            self.bytes = chance.randint(1, 150) * STEP
            self.op = f"alloc={self.bytes // MIB}m"
        self.member.send(self.op)

    def end(self):
        said = self.member.read()
        expect_that(f"{self.op}: {said} {self.member.err()}", said.startswith(f"{self.op}: "))
        code = int(said.rsplit(" ", 1)[1])
        if self.bytes is None:
            expect(self.op, code, 0)
            self.live -= self.blocks.pop(self.number)
            return
        if code == 0:
            self.blocks[self.count] = self.bytes
            self.live += self.bytes
        else:
            expect(self.op, code, REFUSED)
            within = self.live + self.bytes <= self.guarantee and not self.is_refused_for_good
            if "slab" in self.way.values() or "async" in self.way.values():  # holes between live blocks may be too small
                within = within and self.live == 0
            expect_that(f"refused within its guarantee of {self.guarantee}, holding {self.live}: {self.op} {self.way}", not within)
        self.count += 1


def demands(folder):
    seed = int.from_bytes(os.urandom(4), "big")
    print("seed", seed)
    chance = random.Random(seed)
    with Machine(folder, devices="8GiB", RATION_HEADROOM="0") as machine:
        watcher = machine.watcher()
        members = [Demand(machine, chance, WAYS[i % len(WAYS)]) for i in range(MEMBERS)]
        limit = bound = LIMIT
        for number in range(ROUNDS):
            for each in members:
                each.begin(chance)
            if chance.random() < 0.1:
                wanted = chance.choice([LIMIT, LIMIT // 2, 3 * LIMIT // 4])
                done = subprocess.run([RATION, "set", "g", "--limit", str(wanted)], capture_output=True, text=True, timeout=HANG,
                                      env=machine.environment(ration=False) | {"RATION_STATE_DIR": str(machine.state)}, check=False)
                if done.returncode == 0:
                    limit = wanted
                    bound = max(bound, limit)
                else:
                    expect_that(f"ration set: {done.stderr}", "are guaranteed to its members, more than" in done.stderr)
            for each in members:
                each.end()
            if chance.random() < 0.1:
                place = chance.randrange(MEMBERS)
                members[place].member.kill()
                members[place] = Demand(machine, chance, members[place].way)
            if number % 10 == 0:
                bound = compare(machine, watcher, members, limit, bound)
        watcher.ends()
        ended_clean(machine)


def compare(machine, watcher, members, limit, bound):
    """What the books say is what the members hold, and what the device has given. Returns what may be claimed from now on."""
    seen = machine.ps()
    group, = [row for row in seen["groups"] if row["group"] == "g"]
    expect_that(f"claimed {group['claimed_bytes']}, at most {bound}", group["claimed_bytes"] <= bound)
    held = {row["pid"]: row["reserved_bytes"] for row in seen["processes"]}
    for each in members:
        reserved = held.get(each.member.pid, 0)
        expect_that(f"{each.way}: {reserved} reserved, {each.live} live",
                    reserved == each.live if each.way["RATION_MODE"] == "direct" else reserved >= each.live)
    expect("the group's sum", group["reserved_bytes"], sum(held.get(each.member.pid, 0) for each in members))
    for _ in range(1000):  # the device gets a killed member's memory back a little later
        given = held_by_device(watcher, len(members))
        if given == group["reserved_bytes"]:
            break
        now = machine.ps()  # members that listen may have given back since
        group, = [row for row in now["groups"] if row["group"] == "g"]
    expect("what the device has given", given, group["reserved_bytes"])
    return max(limit, min(bound, group["claimed_bytes"]))


expect_that("contexts cost something", CONTEXT > 0)
main({"demands": demands})
