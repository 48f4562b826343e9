#!/usr/bin/env python3
"""What is guaranteed to a member is always obtainable, by nobody else; refused at the start where it does not fit; and kept
by what `ration run` starts, whatever dies."""
import os
import pathlib
import signal
import subprocess
import sys

from members import MIB, MODES, OBEY, RATION, REFUSED, Machine, ended_clean, expect, expect_that
from harness import GIB, HANG, PROGRAMS, SANITIZED, main, of_type, read_log

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
GROUP = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB"}
POOL = {"RATION_MODE": "pool", "RATION_BACKING": "vmm", "RATION_HEADROOM": "0", "RATION_PREALLOCATE": "true", "RATION_PREALLOCATE_AFTER": "0"}
ASYNC = {"RATION_MODE": "async", "RATION_ASYNC_PREALLOCATE": "-1"}
FLAGS = ("--group", "g", "--group-limit", "1GiB", "--guarantee")


def always_obtainable(mode):
    def case(folder):
        with Machine(folder, **MODES[mode], **GROUP) as machine:
            one, two = machine.member(RATION_GUARANTEE="400MiB"), machine.member()
            expect("more than it leaves", two("alloc=630m"), REFUSED)
            two.do("alloc=600m")
            one.do("alloc=100m alloc=200m alloc=90m")
            expect("beyond it", one("alloc=50m"), REFUSED)
            one.do("free=2")
            expect("what is free of it", two("alloc=100m"), REFUSED)
            one.do("alloc=90m")
            one.kill()
            machine.ps()
            two.do("alloc=400m")
            ended_clean(machine)
    return case


def from_a_full_pool(folder):
    """In mode async too, with all of the group guaranteed: what its pool has is to be had, and so is the rest."""
    with Machine(folder, devices="16GiB", **ASYNC, RATION_GROUP="g", RATION_GROUP_LIMIT="8GiB", RATION_HEADROOM="0") as machine:
        one, two = machine.member(RATION_GUARANTEE="7GiB"), machine.member(RATION_GUARANTEE="1GiB")
        one.do("alloc=40m")
        two.do("alloc=1m")
        one.do("alloc=1m alloc=1m free=1 alloc=1m")
        expect_that(f"it was preallocated {machine.reserved()}", machine.reserved()[one.pid] > 6 * GIB)
        one.do("alloc=7000m alloc=50m alloc=50m")
        two.do("alloc=900m alloc=90m alloc=20m")
        expect("beyond it", one("alloc=40m"), REFUSED)
        ended_clean(machine)


def queries_follow(folder):
    with Machine(folder, **MODES["direct"], **GROUP) as machine:
        one, two = machine.member(RATION_GUARANTEE="400MiB"), machine.member()
        expect("of the others", two.memory(), (624 * MIB, GIB))
        two.do("alloc=624m")
        expect("its own", one.memory(), (400 * MIB, GIB))
        ended_clean(machine)


def what_others_are_guaranteed_is_not_free(folder):
    """Although their pools hold it, and do not use it."""
    with Machine(folder, devices="16GiB", **POOL, RATION_GROUP="g", RATION_GROUP_LIMIT="8GiB") as machine:
        one, two = machine.member(RATION_GUARANTEE="4GiB"), machine.member()
        one.do("alloc=100m")
        expect_that(f"it was preallocated {machine.reserved()}", machine.reserved()[one.pid] >= 4 * GIB)
        two.do("alloc=100m")
        free, total = two.memory()
        expect("total", total, 8 * GIB)
        expect_that(f"free {free // MIB} MiB", 3800 * MIB <= free <= 3996 * MIB)
        two.do("alloc=3700m")
        ended_clean(machine)


def workers_of_one_run(folder):
    """Each has a pool, but all of them together what is guaranteed to the run; what they do not use is given."""
    with Machine(folder, devices="16GiB", **POOL) as machine:
        flags = ("--group", "g", "--group-limit", "8GiB", "--guarantee", "2GiB")
        pipes = [machine.folder / f"pipe{number}" for number in range(3)]
        for pipe in pipes:
            os.mkfifo(pipe)
        script = "; ".join(f'"$0" obey <{pipe} &' for pipe in pipes).replace("&;", "&") + " wait"
        environment = machine.environment(ration=False) | {"RATION_STATE_DIR": str(machine.state)} | POOL
        job = subprocess.Popen([RATION, "run", *flags, "--", "/bin/sh", "-c", script, OBEY[0]], env=environment, stdout=subprocess.PIPE,
                               text=True)
        ends = [pipe.open("w") for pipe in pipes]
        for end in ends:
            end.write("init\ncontext=0\nalloc=600m\n")
            end.flush()
            for _ in range(3):
                expect_that("each step", job.stdout.readline().endswith(": 0\n"))
        held = [row["reserved_bytes"] for row in machine.ps()["processes"]]
        expect_that(f"held {held}", sum(held) < 4 * GIB)
        done = run(machine, "--group", "g", "--group-limit", "8GiB", "--guarantee", "4GiB", group=False)
        expect_that(f"another: {done.stderr}", done.returncode == 0 and done.stdout == "started\n")
        for end in ends:
            end.close()
        job.communicate(timeout=HANG)
        ended_clean(machine)


def among_hungry_members(mode):
    """Whoever asks for more, and whatever the library gives them meanwhile."""
    def case(folder):
        with Machine(folder, devices="16GiB", RATION_GROUP="g", RATION_GROUP_LIMIT="6GiB", RATION_MODE=mode) as machine:
            one = machine.launch([PROGRAMS / "crowded", str(20 * ROUNDS)], machine.environment(RATION_GUARANTEE="1GiB"))
            expect("it joins", one.read(), "has its guarantee")
            hungry = [machine.launch([PROGRAMS / "crowded"], machine.environment(RATION_GUARANTEE="512MiB")) for _ in range(3)]
            one.send("go")
            expect("within its guarantee", one.read(), "0 refused")
            for member in hungry:
                member.ends()
            ended_clean(machine)
    return case


def refused_in_words(folder):
    """By the library in one line; by `ration run` with nothing started."""
    with Machine(folder, **MODES["direct"], **GROUP) as machine:
        one = machine.member(RATION_GUARANTEE="700MiB")
        one.do("alloc=50m")
        late = machine.member(RATION_GUARANTEE="400MiB")
        expect("an allocation", late("alloc=1m"), REFUSED)
        said = late.err()
        expect_that(f"line: {said}", "cannot guarantee 400MiB on device 0" in said and "holds 50MiB and keeps 650MiB free" in said and f"(pid {one.pid})" in said and
                    said.count("\n") == 1)
        for size, words in (("400MiB", ["cannot guarantee 400MiB (419430400 bytes) on device 0: ", "324MiB (339738624 bytes) of 1.00GiB (1073741824 bytes) left", f"(pid {one.pid}) is guaranteed 700MiB"]),
                            ("2GiB", ["2.00GiB (2147483648 bytes) on device 0 can never fit"])):
            done = run(machine, *FLAGS, size)
            expect(f"status of {size}", done.returncode, 125)
            expect_that(f"words {done.stderr}", all(word in done.stderr for word in words))
            expect("nothing was started", done.stdout, "")
        done = run(machine, "--guarantee", "1MiB", group=False)
        expect_that(f"without a group: {done.stderr}", done.returncode == 125 and "needs a group" in done.stderr)
        ended_clean(machine)


def what_the_dead_stated(folder):
    """The limit of a run that was refused, or killed, is none for those that come later, nor for those that are there."""
    with Machine(folder, **MODES["direct"]) as machine:
        there = machine.member(RATION_GROUP="g", RATION_GROUP_LIMIT="1GiB")
        done = run(machine, "--group", "g", "--group-limit", "256MiB", "--guarantee", "512MiB")
        expect_that(f"refused: {done.stderr}", done.returncode == 125 and "can never fit" in done.stderr)
        expect("total", there.memory()[1], GIB)
        killed = machine.ration_run("--group", "g", "--group-limit", "256MiB", "--guarantee", "1MiB")
        killed.do("init")
        killed.kill()
        killed.process.stdin.close()
        killed.read()
        done = run(machine, *FLAGS, "512MiB")
        expect_that(f"it starts: {done.stderr}", done.returncode == 0 and done.stdout == "started\n")
        done = run(machine, "--group", "without", "--guarantee", "1GiB")
        expect_that(f"without a limit: {done.stderr}", done.returncode == 125 and "has no limit" in done.stderr)
        done = run(machine, *FLAGS, "512MiB", "--limit", "256MiB")
        expect_that(f"more than its limit: {done.stderr}", done.returncode == 125 and "more than the command may take" in done.stderr)
        ended_clean(machine)


def run(machine, *flags, group=True, command=("/bin/echo", "started")):
    environment = machine.environment(ration=False) | {"RATION_STATE_DIR": str(machine.state)} | (machine.settings if group else {})
    return subprocess.run([RATION, "run", *flags, "--", *command], env=environment, capture_output=True, text=True, timeout=HANG,
                          check=False)


def of_a_run(folder):
    """All that one run starts has the guarantee together, also when `ration run` was killed."""
    with Machine(folder, **MODES["direct"]) as machine:
        other = machine.member(**GROUP)
        first = machine.ration_run(*FLAGS, "400MiB")
        first.do("init context=0 alloc=300m")
        expect("the rest is guaranteed to the run", other("alloc=630m"), REFUSED)
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        expect("and stays", other("alloc=630m"), REFUSED)
        other.do("alloc=620m")
        first.do("alloc=100m")
        expect("beyond it", first("alloc=10m"), REFUSED)
        first.process.stdin.close()
        expect("the last word", first.read(), "obey: 0")
        ended_clean_after(machine, other)


def on_one_device(folder):
    """A guarantee that names a device is claimed there alone; another one on each device."""
    with Machine(folder, devices="4GiB,4GiB", **MODES["direct"]) as machine:
        for guarantee, wanted in (("0=1GiB", [GIB, 0]), ("512MiB", [512 * MIB, 512 * MIB]), ("0=1GiB,1=256MiB", [GIB, 256 * MIB])):
            job = machine.ration_run("--group", "g", "--group-limit", "2GiB", "--guarantee", guarantee)
            job.do("init")
            seen = machine.ps()
            order = [device["uuid"] for device in sorted(seen["devices"], key=lambda device: device["gpu_index"])]
            rows = {row["uuid"]: row["guaranteed_bytes"] for row in seen["groups"] if row["kind"] == "named"}
            expect(f"guaranteed by {guarantee}", [rows.get(uuid, 0) for uuid in order], wanted)
            job.process.stdin.close()
            expect("the last word", job.read(), "obey: 0")
        done = run(machine, "--group", "g", "--group-limit", "2GiB", "--guarantee", "7=1GiB")
        expect_that(f"no such device: {done.stderr}", done.returncode == 125 and "there is no device" in done.stderr and not done.stdout)
        done = run(machine, "--group", "g", "--group-limit", "2GiB", "--guarantee", "1=3GiB")
        expect_that(f"too much of one: {done.stderr}", "3.00GiB (3221225472 bytes) on device 1 can never fit" in done.stderr)


def ended_clean_after(machine, other):
    for _ in range(100):
        if other("alloc=400m") == 0:
            break
        machine.ps()
    else:
        expect_that("the guarantee ends with the run", False)
    ended_clean(machine)


def one_after_the_other(folder):
    """A job of several commands keeps its part between them."""
    with Machine(folder, **MODES["direct"]) as machine:
        other = machine.member(**GROUP)
        script = 'printf "init\\ncontext=0\\nalloc=400m\\n" | "$0" obey; echo between; read line; printf "init\\ncontext=0\\nalloc=400m\\n" | "$0" obey'
        environment = machine.environment(ration=False) | {"RATION_STATE_DIR": str(machine.state)} | MODES["direct"]
        job = subprocess.Popen([RATION, "run", *FLAGS, "400MiB", "--", "/bin/sh", "-c", script, OBEY[0]], env=environment,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for step in ("init", "context=0", "alloc=400m", "obey"):
            expect("the first command", job.stdout.readline(), f"{step}: 0\n")
        expect("then", job.stdout.readline(), "between\n")
        expect("between them", other("alloc=630m"), REFUSED)
        other.do("alloc=620m")
        said, err = job.communicate("go on\n", timeout=HANG)
        expect_that(f"the second command: {said} {err}", "alloc=400m: 0" in said)
        ended_clean(machine)


def at_once(how, backing):
    """Eight processes that start at the same moment: each has its guarantee."""
    def case(folder):
        for number in range(ROUNDS):
            (apart := folder_of(folder, number)).mkdir()
            settings = {"RATION_MODE": "pool", "RATION_BACKING": backing, "RATION_HEADROOM": "0", "RATION_PREALLOCATE": "true", "RATION_PREALLOCATE_AFTER": "0"}
            with Machine(apart, devices="16GiB", **settings) as machine:
                if how == "run":
                    members = [machine.ration_run("--group", "g", "--group-limit", "8GiB", "--guarantee", "1GiB") for _ in range(8)]
                else:
                    group = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "8GiB"} | ({"RATION_GUARANTEE": "1GiB"} if how == "library" else {})
                    members = [machine.start(**group) for _ in range(8)]
                steps = ["init", "context=0", "alloc=512m"] + (["alloc=511m"] if how != "nothing" else [])
                for step in steps:
                    for member in members:
                        member.send(step)
                    for member in members:
                        said = member.read()
                        expect(f"round {number}: {member.err()}", said[-len(step) - 3:], f"{step}: 0")
                held = sum(row["reserved_bytes"] for row in machine.ps()["processes"])
                expect_that(f"the limit: {held}", held <= 8 * GIB)
                ended_clean(machine)
    return case


def folder_of(folder, number):
    return pathlib.Path(folder) / str(number)


def wait_for_an_allocation(folder):
    """RATION_WAIT: what others use is waited for, at most so long; the process's own memory never is."""
    with Machine(folder, **MODES["direct"], **GROUP) as machine:
        one, two = machine.member(), machine.member(RATION_WAIT="60s", RATION_LOG=machine.folder / "log")
        one.do("alloc=800m")
        two.send("alloc=500m")
        until(lambda: [row for row in machine.ps()["processes"] if row["pid"] == two.pid], "it waits")
        expect("the one that leaves", one("free=0"), 0)
        expect("the other", two.read(), "alloc=500m: 0")
        expect("its own memory", two("alloc=800m"), REFUSED)
        ended_clean(machine)
    (short := folder_of(folder, "short")).mkdir()
    with Machine(short, **MODES["direct"], **GROUP) as machine:
        one, two = machine.member(), machine.member(RATION_WAIT="100ms")
        one.do("alloc=800m")
        expect("bounded", two("alloc=500m"), REFUSED)
        ended_clean(machine)
    (pool := folder_of(folder, "pool")).mkdir()
    with Machine(pool, RATION_MODE="pool", RATION_PREALLOCATE="false", **GROUP) as machine:
        one, two = machine.member(), machine.member(RATION_WAIT="1s", RATION_LOG=machine.folder / "log")
        one.do("alloc=800m")
        expect("bounded", two("alloc=500m"), REFUSED)
        ended_clean(machine)
        waits = [each["dur"] for each in of_type(read_log(machine.folder / "log"), "wait") if each["how"] == "members"]
        expect_that(f"once, with one end for all of them: {waits}", 0 < sum(waits) < 1_900_000_000)
    (ends := folder_of(folder, "ends")).mkdir()
    with Machine(ends, **MODES["direct"], RATION_GROUP="g") as machine:
        one, two = machine.member(RATION_GROUP_LIMIT="1GiB"), machine.member(RATION_WAIT="20s", RATION_LOG=machine.folder / "log")
        one.do("alloc=800m")
        two.send("alloc=500m")
        until(lambda: [row for row in machine.ps()["processes"] if row["pid"] == two.pid and row["waiting_bytes"]], "it waits")
        one.end()
        expect("after the member that stated the limit", two.read(), "alloc=500m: 0")
        ended_clean(machine)
        came = [each["bytes"] for each in of_type(read_log(machine.folder / "log"), "wait") if each["how"] == "members"]
        expect("what came, from the member that held it", came, [800 * MIB])


def until(holds, what):
    for _ in range(1000):
        if holds():
            return
    expect_that(what, False)


main({f"{mode}: always obtainable": always_obtainable(mode) for mode in MODES} | {"async: from a full pool": from_a_full_pool, "what others are guaranteed": what_others_are_guaranteed_is_not_free} |
     {f"{mode}: among hungry members": among_hungry_members(mode) for mode in ("direct", "pool")} |
     {"queries follow": queries_follow, "refused in words": refused_in_words, "of a run": of_a_run, "on one device": on_one_device, "what the dead stated": what_the_dead_stated,
      "an allocation waits": wait_for_an_allocation} |
     ({} if SANITIZED else {"one command after the other": one_after_the_other, "workers of one run": workers_of_one_run}) |  # the shell has no sanitizer
     {f"eight at once: {how}, {backing}": at_once(how, backing) for how in ("library", "run", "nothing") for backing in ("vmm", "slab")})
