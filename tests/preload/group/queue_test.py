#!/usr/bin/env python3
"""`ration run --wait`: jobs start when there is room, in the order in which they came, whatever is killed meanwhile."""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

from members import MIB, OBEY, RATION, Machine, expect, expect_that
from harness import GIB, HANG, main

JOBS = int(sys.argv[1]) if len(sys.argv) > 1 else 12
DEVICE = 16 * GIB
CONTEXT = 256 * MIB


class Job:
    """One `ration run --wait`, whose program takes all that it asked for, says so, and ends when it is told to."""

    def __init__(self, machine, size, *flags, steps=None, **settings):
        environment = machine.environment(ration=False) | {"RATION_STATE_DIR": str(machine.state), "RATION_MODE": "direct"} | settings
        self.size = size
        self.process = subprocess.Popen([RATION, "run", "--wait", "--limit", str(size), *flags, "--", *OBEY], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True)
        machine.jobs.append(self)
        os.set_blocking(self.process.stdout.fileno(), False)
        self.process.stdin.write(steps or f"init\ncontext=0\nalloc={size // MIB}m\n")
        self.process.stdin.flush()
        self.said = ""

    def poll(self):
        try:
            self.said += os.read(self.process.stdout.fileno(), 4096).decode()
        except BlockingIOError:
            pass
        return self

    @property
    def runs(self):
        return "init:" in self.poll().said

    @property
    def has_it(self):
        return "m: 0\n" in self.poll().said

    def end(self):
        os.set_blocking(self.process.stdout.fileno(), True)
        said, err = self.process.communicate(timeout=HANG)
        self.said += said or ""
        return err

    def kill(self):
        """With all that it started, as an engine does."""
        os.killpg(self.process.pid, signal.SIGKILL)
        os.set_blocking(self.process.stdout.fileno(), True)
        self.process.communicate()


def run(machine, *flags):
    environment = machine.environment(ration=False) | {"RATION_STATE_DIR": str(machine.state)}
    return subprocess.run([RATION, "run", *flags, "--", "/bin/echo", "started"], env=environment, capture_output=True, text=True,
                          timeout=HANG, check=False)


def until(holds, what, seconds=HANG):
    end = time.monotonic() + seconds
    while not holds():
        expect_that(what, time.monotonic() < end)
        os.sched_yield()


class JobMachine(Machine):
    """Kills the jobs that a failed test has left, too."""

    def __init__(self, folder):
        super().__init__(folder, devices=str(DEVICE))
        self.simulated["SIMCUDA_CONTEXT_BYTES"] = str(CONTEXT)
        self.jobs = []

    def __exit__(self, *error):
        for job in self.jobs:
            if job.process.poll() is None:
                job.kill()
        super().__exit__(*error)


def one_by_one(folder):
    """The second starts when the first has ended; with words until then; and sees its limit."""
    with JobMachine(folder) as machine:
        first, second = Job(machine, 10 * GIB), None
        until(lambda: first.has_it, "the first has its memory")
        second = Job(machine, 8 * GIB)
        line = second.process.stderr.readline()
        expect_that(f"line: {line}", line.startswith("ration: run: waits for room: needs 8.00GiB (8589934592 bytes) on device 0; "))
        expect("it waits", second.runs, False)
        first.end()
        until(lambda: second.has_it, "the second has its memory")
        second.end()


def without_its_run(folder):
    """Where `ration run` alone is killed its command keeps its room, before and after it has taken it."""
    for step in ("runs", "has_it"):
        (apart := pathlib.Path(folder) / step).mkdir()
        with JobMachine(apart) as machine:
            first = Job(machine, 10 * GIB, steps="init\n" if step == "runs" else None)
            until(lambda: getattr(first, step), f"the first {step}")
            os.kill(first.process.pid, signal.SIGKILL)
            first.process.wait()
            second = Job(machine, 8 * GIB)
            line = second.process.stderr.readline()
            expect_that(f"line: {line}", "waits for room" in line)
            expect("it waits", second.runs, False)
            first.end()
            until(lambda: second.has_it, "the second has its memory")
            second.end()


def stopped(folder):
    """One that was stopped while it waited holds up nobody, and has its place again when it goes on."""
    with JobMachine(folder) as machine:
        other = machine.watcher()
        other.do("alloc=12g")
        first = Job(machine, 10 * GIB)
        expect_that("it waits", "waits for room" in first.process.stderr.readline())
        first.process.send_signal(signal.SIGSTOP)
        second = Job(machine, 8 * GIB)
        expect_that("it waits", "1 other waits ahead of it" in second.process.stderr.readline())
        other.do("free=0")
        until(lambda: second.has_it, "the second has its memory")
        second.end()
        first.process.send_signal(signal.SIGCONT)
        until(lambda: first.has_it, "the first has its memory")
        first.end()


def bounded(folder):
    with JobMachine(folder) as machine:
        first = Job(machine, 10 * GIB)
        until(lambda: first.has_it, "the first has its memory")
        done = run(machine, "--wait=200ms", "--limit", "8GiB")
        expect_that(f"status, words: {done}", done.returncode == 125 and "no room within 200ms" in done.stderr and not done.stdout)
        for flags, words in ((["--wait"], "nothing to wait for"), (["--wait=soon", "--limit", "1GiB"], "--wait=soon"),
                             (["--wait", "--limit", "1GiB", "--group", "g", "--group-limit", "512MiB"], "can never fit")):
            done = run(machine, *flags)
            expect_that(f"{flags}: {done}", done.returncode == 125 and words in done.stderr and not done.stdout)
        first.end()


def a_full_device(folder):
    """What programs without Ration hold counts, too."""
    with JobMachine(folder) as machine:
        other = machine.watcher()
        other.do("alloc=12g")
        job = Job(machine, 8 * GIB)
        line = job.process.stderr.readline()
        expect_that(f"line: {line}", "waits for room" in line and f"(pid {other.pid}) holds 12.3GiB without Ration" in line)
        other.do("free=0")
        until(lambda: job.has_it, "the job has its memory")
        job.end()


IDLE = {"RATION_MODE": "pool", "RATION_HEADROOM": "0", "RATION_PREALLOCATE_AFTER": "0", "RATION_PREALLOCATE": str(12 * GIB)}


def beside_idle_memory(folder):
    """What neighbours hold and do not use is room, in whatever group they are; they are asked for it, as by the command."""
    for name, settings in {"vmm": {"RATION_BACKING": "vmm"}, "slab": {"RATION_BACKING": "slab"}, "async": {"RATION_MODE": "async"},
                           "group": {"RATION_GROUP": "g"}, "tree": {"RATION_GROUP_TREE": "0123456789abcdef0123456789abcdef"}}.items():
        (apart := pathlib.Path(folder) / name).mkdir()
        with JobMachine(apart) as machine:
            neighbour = machine.member(**IDLE | settings)
            neighbour.do("alloc=12200m free=0" if name == "async" else "alloc=600m free=0 context=0")
            expect_that(f"{name} holds it", held(machine, neighbour) >= 11 * GIB)
            job = Job(machine, 8 * GIB)
            until(lambda: job.has_it, f"{name}: the job has its memory")
            neighbour.do("alloc=1g")
            expect_that("one line at most, where they take their time", job.end().count("waits for room") <= 1)


def held(machine, member):
    return sum(row["reserved_bytes"] for row in machine.ps()["processes"] if row["pid"] == member.pid)


def beside_used_memory(folder):
    """While it waits it names who holds the device; what a run was promised is nobody else's though it is not used."""
    with JobMachine(folder) as machine:
        neighbour = machine.member(**IDLE)
        neighbour.do("alloc=10g")
        done = run(machine, "--wait=300ms", "--limit", "8GiB")
        expect_that(f"status, words: {done}", done.returncode == 125 and not done.stdout and
                    f"(pid {neighbour.pid}) holds 12.0GiB and does not use 2.00GiB of it" in done.stderr)
        expect_that("nobody was asked for what would not do", held(machine, neighbour) >= 12 * GIB)
        second = Job(machine, 8 * GIB)
        line = second.process.stderr.readline()
        expect_that(f"line: {line}", f"(pid {neighbour.pid}) holds 12.0GiB" in line)
        third = Job(machine, 8 * GIB)
        line = third.process.stderr.readline()
        expect_that(f"line: {line}", f"(pid {neighbour.pid}) holds 12.0GiB" in line and "1 other waits ahead of it" in line)
        neighbour.do("free=0")
        until(lambda: second.has_it, "the second has its memory")
        expect("the third waits", third.runs, False)
        second.end()
        until(lambda: third.has_it, "the third has its memory")
        third.end()


def told_at_each_change(folder):
    """Who holds up a job is told again when it is somebody else, and the refusal in the end names who does it then."""
    with JobMachine(folder) as machine:
        first = Job(machine, 10 * GIB)
        until(lambda: first.has_it, "the first has its memory")
        second = Job(machine, 8 * GIB)
        expect_that("the second waits", f"(pid {first.process.pid})" in second.process.stderr.readline())
        row, = [row for row in machine.ps()["processes"] if row["pid"] == second.process.pid]
        expect("what it waits for", (row["waiting_bytes"], row["waits_for"]), (8 * GIB, "device"))
        expect("who holds it: the run to which it is guaranteed, and not its program once more",
               [(holder["pid"], holder["guarantee"]) for holder in row["holders"]], [(first.process.pid, 10 * GIB)])
        third = Job(machine, 9 * GIB)
        line = third.process.stderr.readline()
        expect_that(f"line: {line}", "waits for room: needs 9.00GiB" in line and f"(pid {first.process.pid}) is guaranteed 10.0GiB" in line and
                    f"1 other waits ahead of it: ration run {OBEY[0]} (pid {second.process.pid}) for 8.00GiB" in line)
        done = run(machine, "--wait=200ms", "--limit", "8GiB")
        for job, words in ((first, "is guaranteed 10.0GiB"), (second, "for 8.00GiB"), (third, "for 9.00GiB")):
            expect_that(f"{words} of {done}", re.search(rf"no room within 200ms: .*\(pid {job.process.pid}\) {words}", done.stderr))
        first.end()
        until(lambda: second.has_it, "the second has its memory")
        while not re.search("(is guaranteed|keeps) 8.00GiB", line):
            line = third.process.stderr.readline()
            expect_that(f"the next line: {line}", line.startswith("ration: run: still waits for room: needs 9.00GiB"))
        expect_that(f"who holds it now: {line}", f"(pid {second.process.pid})" in line and f"(pid {first.process.pid})" not in line)
        second.end()
        until(lambda: third.has_it, "the third has its memory")
        third.end()


def beside_a_promise(folder):
    """What a run was promised is nobody else's, though its program does not use it."""
    with JobMachine(folder) as machine:
        first = Job(machine, 10 * GIB, steps="init\ncontext=0\nalloc=600m\n", **IDLE | {"RATION_PREALLOCATE": "true"})
        until(lambda: first.has_it, "the first has its memory")
        done = run(machine, "--wait=300ms", "--limit", "8GiB")
        expect_that(f"status, words: {done}", done.returncode == 125 and not done.stdout and f"(pid {first.process.pid}) " in done.stderr)
        first.end()


def in_a_group(folder):
    """The guarantee of a group is what is waited for; members without one are served beside it."""
    with JobMachine(folder) as machine:
        flags = ("--group", "g", "--group-limit", "8GiB", "--guarantee", "5GiB")
        first = Job(machine, 6 * GIB, *flags)
        until(lambda: first.has_it, "the first has its memory")
        second = Job(machine, 6 * GIB, *flags)
        line = second.process.stderr.readline()
        expect_that(f"line: {line}", "group 'g' has 2.00GiB (2147483648 bytes) of 8.00GiB (8589934592 bytes) left" in line and "steps (pid" in line)
        subprocess.run([RATION, "set", "g", "--limit", "9GiB"], env=machine.environment(ration=False) | {"RATION_STATE_DIR": str(machine.state)},
                       capture_output=True, timeout=HANG, check=True)
        line = second.process.stderr.readline()
        expect_that(f"after a new limit: {line}", line.startswith("ration: run: still waits") and "of 9.00GiB (9663676416 bytes) left" in line)
        first.end()
        until(lambda: second.has_it, "the second has its memory")
        second.end()


def many(folder):
    """Jobs of random size, some of them killed: the others run, in order, and never more than fit."""
    seed = int.from_bytes(os.urandom(4), "big")
    print("seed", seed)
    chance = random.Random(seed)
    with JobMachine(folder) as machine:
        jobs, waiting, order, running, killed, ended = [], [], [], [], set(), set()
        room_since = None
        end = time.monotonic() + 20 * HANG
        while len(killed) + len(ended) < JOBS:
            expect_that(f"they go on: {len(killed)} killed, {len(ended)} ended, {[job.said for job in running]}", time.monotonic() < end)
            if len(jobs) < JOBS:
                jobs.append(Job(machine, chance.randint(1, 12) * GIB))
                waiting.append(jobs[-1])
                queued(machine, jobs[-1])
            for job in list(waiting):
                if job.runs:
                    waiting.remove(job)
                    running.append(job)
                    order.append(jobs.index(job))
            for job in list(running):
                if job.poll().has_it and chance.random() < 0.2:
                    running.remove(job)
                    if chance.random() < 0.3:
                        job.kill()
                        killed.add(job)
                    else:
                        err = job.end()
                        expect(f"status: {err}", job.process.returncode, 0)
                        ended.add(job)
                else:
                    expect_that(f"refused: {job.said}", "m: 2" not in job.said)
            if waiting and len(jobs) == JOBS and chance.random() < 0.02:
                gone = chance.choice(waiting)
                waiting.remove(gone)
                if not gone.runs:
                    gone.kill()
                    killed.add(gone)
                else:
                    running.append(gone)
                    order.append(jobs.index(gone))
            held = sum(job.size for job in running)
            expect_that(f"the device is not oversubscribed: {held}", held <= DEVICE)
            fits = bool(waiting) and waiting[0].size + held + (len(running) + 1) * CONTEXT <= DEVICE and not waiting[0].runs
            room_since = (room_since or (time.monotonic(), waiting[0])) if fits and (not room_since or room_since[1] is waiting[0]) else None
            expect_that("nobody waits while there is room", room_since is None or time.monotonic() - room_since[0] < 10)
        expect("the order of the starts", order, sorted(order))


def queued(machine, job):
    """It is in the queue or runs: the order is that in which they came."""
    until(lambda: job.runs or any(row["pid"] == job.process.pid for row in machine.ps()["processes"]), "it is in the queue")


main({"one by one": one_by_one, "without its run": without_its_run, "stopped": stopped, "bounded": bounded, "a full device": a_full_device, "beside idle memory": beside_idle_memory, "beside used memory": beside_used_memory,
      "beside a promise": beside_a_promise, "in a group": in_a_group, "told at each change": told_at_each_change, "many": many})
