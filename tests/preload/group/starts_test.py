#!/usr/bin/env python3
"""Little programs of all kinds (newcomer.cc), started one after the other on one card, which has room for all that is
live: what is served natively is served under Ration, whatever the settings. starts ROUNDS PROGRAMS [SEED]: so many
rounds of so many programs. Round N of a seed is the first one of seed + N."""
import pathlib
import random
import subprocess
import sys
from dataclasses import dataclass

from members import PROGRAMS, Machine, ended_clean, expect, expect_that
from harness import MIB, Failure, driver_folder, main

ROUNDS, COUNT = int(sys.argv[1]), int(sys.argv[2])
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
CARD, CONTEXT = 4096, 32  # MiB
ROUTES = [route for route in subprocess.run([PROGRAMS / "newcomer"], capture_output=True, text=True, check=True, env={
    "LD_LIBRARY_PATH": str(driver_folder("sim"))}).stdout.split() if not route.startswith("elsewhere_")]
CODE = {"module", "library", "library_launch", "heap_launch"}  # one a program: they share a variable
IN_CHUNKS = {"async", "streams", "own_pool", "graph_launch", "graph_upload"}
WITHOUT_MEMORY = {"primary", "context", "second_context", "green", "pinned", "ipc_open"}
POOLS = {"granules": {"RATION_MODE": "pool", "RATION_BACKING": "vmm"}, "slabs": {"RATION_MODE": "pool", "RATION_BACKING": "slab"},
         "async": {"RATION_MODE": "async"}, "direct": {"RATION_MODE": "direct"}}
AT_ONCE = {"RATION_PREALLOCATE": "true", "RATION_PREALLOCATE_AFTER": "0", "RATION_HEADROOM": "0"}
GROUPS = [{}, {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": f"{CARD}MiB"}, {"RATION_GROUP": "h"}]


@dataclass(eq=False)
class Program:
    number: int
    steps: list  # (route, MiB)
    settings: dict
    briefly: bool  # frees at once what it took, and idles
    lender: object = None  # the program whose block it opens
    freed: bool = False
    member: object = None

    def arguments(self):
        return [str(word) for step in self.steps for word in step]

    def contexts(self):
        routes = [route for route, _ in self.steps]
        own = routes.count("context") + routes.count("second_context")
        return own * (not self.freed) + any(route not in ("context", "green") for route in routes)

    def holds(self):
        """The most MiB of the card that it has, natively."""
        left = [step for step in self.steps if not self.freed or step[0] in CODE]
        return self.contexts() * CONTEXT + sum(taken(*step) for step in left)

    def __str__(self):
        words = [f"{key}={value}" for key, value in self.settings.items()]
        return f"program {self.number}: {' '.join(words)} newcomer {' '.join(self.arguments())}"


def taken(route, size):
    if route in WITHOUT_MEMORY:
        return 0
    if route in IN_CHUNKS:
        return (size + 31) // 32 * 32 + 32
    return size * 4 // 3 if route == "mipmapped" else size


def draw_settings(draw, pool, steps, briefly):
    memory = sum(taken(*step) for step in steps)
    limit = draw.choice(({}, {"RATION_LIMIT": f"{memory * draw.choice((5, 8, 16)) // 4 + 96}MiB"}, {"RATION_LIMIT": f"{draw.randrange(40, 101)}%"},
                         {"RATION_RESERVE": f"{draw.randrange(64, 1024)}MiB"}))
    preallocation = draw.choice(({}, AT_ONCE, {"RATION_PREALLOCATE": "false"}))
    if pool == "slabs" and not (briefly and len(steps) == 1):
        preallocation = {"RATION_PREALLOCATE": "false"}  # a slab that holds a block keeps the rest of it from all others
    return POOLS[pool] | limit | draw.choice(GROUPS) | preallocation


def draw_program(draw, number, lenders):
    pool = draw.choice(list(POOLS))
    lender = draw.choice(lenders) if lenders else None
    steps = []
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        route = draw.choice(ROUTES)
        used = {other for other, _ in steps}
        # A block of mode async has no handle for other processes.
        if (route == "ipc_open" and lender is None) or (route == "ipc_export" and pool == "async") or (route in CODE and used & CODE):
            route = "alloc"
        if not used & {"ipc_export", "ipc_open"}:
            steps.append((route, 16 * draw.choice((1, 2, 3, 4, 8, 16))))
    briefly = draw.random() < 0.3
    return Program(number, steps, draw_settings(draw, pool, steps, briefly), briefly, lender if steps[-1][0] == "ipc_open" else None)


def draw_round(seed):
    """What happens, one after the other: (act, program). What is live comes to seven eighths of the card at most."""
    draw = random.Random(seed)
    acts, live = [], []
    for number in range(COUNT):
        one = draw_program(draw, number, [other for other in live if other.steps[-1][0] == "ipc_export" and not other.freed])
        others = [other for other in live if other is not one.lender]
        while others and (sum(other.holds() for other in live) + one.holds() > CARD * 7 // 8 - CONTEXT or draw.random() < 0.1):
            act, other = draw.choice(("end", "kill", "free", "check")), draw.choice(others)
            acts.append((act, other))
            if act in ("end", "kill"):
                live.remove(other)
                others.remove(other)
            other.freed |= act == "free"
        acts.append(("start", one))
        live.append(one)
        if one.briefly:
            acts.append(("free", one))
            one.freed = True
    return acts + [("check", one) for one in live], live


def carry_out(machine, act, one, ration):
    if act == "start":
        handle = machine.folder / f"handle.{(one.lender or one).number}"
        one.member = machine.start("newcomer", *one.arguments(), ration=ration, NEWCOMER_HANDLE=handle, **(one.settings if ration else {}))
    elif act == "kill":
        one.member.kill()
        return "killed"
    elif act == "end":
        one.member.ends()
        return "ended"
    else:
        one.member.send(act)
    return one.member.read()


def play(folder, acts, live, ration):
    """The answers to all acts up to the first one that fails, and why it did."""
    answers = []
    folder.mkdir()
    with Machine(folder, devices=f"{CARD}MiB") as machine:
        machine.simulated |= {"SIMCUDA_CONTEXT_BYTES": str(CONTEXT * MIB), "SIMCUDA_RETURN_MS": "0"}
        watcher = machine.watcher()
        before = watcher.memory()
        for act, one in acts:
            answers.append(carry_out(machine, act, one, ration))
            if answers[-1] not in ("0", "ended", "killed"):
                return answers, f"{one.member.err()}, {watcher.memory()[0] // MIB} MiB are free beside{living(machine, acts[:len(answers) - 1])}"
        if ration:
            agree(machine, watcher, live)
        for one in live:
            one.member.ends()
        expect("free memory once all have ended", watcher.memory(), before)
        ended_clean(machine)
    return answers, ""


def living(machine, acts):
    """After these acts: the programs, with what they hold and use."""
    rows = {row["pid"]: f"{row['reserved_bytes'] // MIB} MiB, {row['used_bytes'] // MIB} used" for row in machine.ps()["processes"]}
    there = {}
    for act, one in acts:
        if act in ("end", "kill"):
            del there[one]
        else:
            there[one] = " (freed)" if act == "free" else there.get(one, "")
    return "".join(f"\n  {one}{freed}: {rows.get(one.member.pid)}" for one, freed in there.items())


def agree(machine, watcher, live):
    """What `ration ps` says of those that live, and what the device holds."""
    seen = machine.ps()
    free, total = watcher.memory()
    rows = {row["pid"]: row for row in seen["processes"]}
    known = {one.member.pid for one in live}
    expect_that(f"rows {sorted(rows)} of {sorted(known)}", set(rows) <= known)
    expect_that(f"more is used than reserved: {rows}", all(row["used_bytes"] <= row["reserved_bytes"] for row in rows.values()))
    reserved, used = (sum(row[key] for row in rows.values()) for key in ("reserved_bytes", "used_bytes"))
    expect("the device's totals", [(row["reserved_bytes"], row["used_bytes"], row["process_count"]) for row in seen["devices"]],
           [(reserved, used, len(rows))] if rows else [])
    for group in ("g", "h"):
        grouped = [row["reserved_bytes"] for row in rows.values() if group in [each["group"] for each in row["groups"]]]
        expect(f"the totals of group {group}", [(row["reserved_bytes"], row["process_count"]) for row in seen["groups"] if row["group"] == group],
               [(sum(grouped), len(grouped))] if grouped else [])
    contexts = (1 + sum(one.contexts() for one in live)) * CONTEXT * MIB
    expect_that(f"{used} bytes used, {total - free - contexts} on the device", used <= total - free - contexts)


def play_round(seed):
    def case(folder):
        acts, live = draw_round(seed)
        natively, why = play(pathlib.Path(folder) / "natively", acts, live, False)
        expect(f"seed {seed}: acts that succeed natively{why}", len(natively), len(acts))
        answers, why = play(pathlib.Path(folder) / "ration", acts, live, True)
        if answers != natively:
            act, one = acts[len(answers) - 1]
            raise Failure(f"seed {seed}: {act} {one}: {answers[-1]!r} {why}")
    return case


print(f"seed {SEED}")
main({f"seed {seed}": play_round(seed) for seed in range(SEED, SEED + ROUNDS)})
