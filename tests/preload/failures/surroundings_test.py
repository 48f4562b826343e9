#!/usr/bin/env python3
"""What surrounds a program: neighbours on its device, few descriptors, libraries that ask libc in every call, handlers
that end it, values as other tools write them."""
import json
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parents[1] / "group")]
from harness import GIB, LIBRARIES, MIB, PROGRAMS, SANITIZED, expect, main, run  # noqa: E402
from members import MODES, REFUSED, Machine  # noqa: E402

WAYS = {"direct": {"RATION_MODE": "direct"}, "slabs": {"RATION_BACKING": "slab"}, "granules": {"RATION_BACKING": "vmm"},
        "async": {"RATION_MODE": "async"}}
MACHINE = {"SIMCUDA_DEVICES": "4GiB", "SIMCUDA_CONTEXT_BYTES": "1MiB"}
# As --env-file of Docker, a file of Windows, a unit of systemd and a person leave them.
MISREAD = ('"1GiB"', "'1GiB'", "1GiB\r", "1GiB\n", "1GiB;", "=1GiB", "1GiB # comment", "1\u00a0GiB", "${LIMIT}", "1GiB,", "1 GiB GiB")


def undisturbed(mode):
    """Programs that measure themselves by free memory before and after: what others take and free is not in it."""
    def case(folder):
        with Machine(folder, devices="4GiB", RATION_LIMIT="1GiB", **MODES[mode]) as machine:
            planner, neighbour, stranger = machine.member(), machine.member(), machine.watcher()
            planner.do("alloc=100m")
            before = planner.memory()
            for who, op in ((neighbour, "alloc=700m"), (stranger, "alloc=1200m"), (neighbour, "alloc=200m"), (neighbour, "free=0"),
                            (neighbour, "alloc_async=300m"), (neighbour, "managed=50m"), (stranger, "free=0")):
                who.do(op)
                expect(f"after {op}", planner.memory(), before)
            neighbour.kill()
            expect("after its end", planner.memory(), before)
            planner.do("alloc=900m free=0 free=1 alloc=1000m")
    return case


def few_descriptors(way):
    """Memory in many pieces costs no descriptor each."""
    def case(folder):
        with Machine(folder, devices="4GiB", RATION_LIMIT="1GiB", RATION_PREALLOCATE="false", **WAYS[way]) as machine:
            member = machine.launch(["/bin/sh", "-c", f"ulimit -n 24; exec {PROGRAMS / 'steps'} obey"], machine.environment())
            member.do("init context=0 " + "alloc=2m " * 500 + "free=3 free=77 alloc=4m query")
            expect("beyond", member("alloc=100m"), REFUSED)
            member.ends()
            expect("stderr", member.err(), "")
    return case


def beside_one_that_asks(order, way):
    ours, theirs = LIBRARIES, str(PROGRAMS / "libasking.so")

    def case(folder):
        ops = ("init", "context=0", "query", "alloc=100m", "alloc=1k", "free=0", "alloc=2g", "stream", "alloc_async=1m", "query",
               "other:current=0+alloc=3m", "child:total=0", "free=1", "destroy=0")
        plain = run("steps", *ops, preload=theirs, **MACHINE)
        expect("without Ration: status, stderr", (plain.status, plain.err), (0, ""))
        done = run("steps", *ops, preload=":".join((theirs, ours) if order == "before" else (ours, theirs)), folder=folder,
                   RATION_LIMIT="1GiB", RATION_PREALLOCATE="false", RATION_GROUP="g", RATION_STACKS="native", **MACHINE, **WAYS[way])
        expect("status, stderr", (done.status, done.err), (0, ""))
        said, native = ([line.rsplit(" ", 1) for line in one.out.splitlines()] for one in (done, plain))
        expect("other codes than without Ration", [mine[0] for mine, theirs in zip(said, native) if mine[1] != theirs[1]], ["alloc=2g:"])
    return case


def exits_in_a_handler(way):
    """It may interrupt the program in the middle of a call."""
    def case(folder):
        for number in range(25):
            done = run("host", "signalled", str(100 + 173 * number), folder=folder, RATION_LIMIT="1GiB", **MACHINE, **WAYS[way])
            expect("status, stderr", (done.status, done.err), (7, ""))
    return case


def as_others_write_them(_):
    for value in MISREAD:
        done = run("steps", "init", "context=0", "total=0", "alloc=3073m", RATION_LIMIT=value, **MACHINE)
        expect(f"{value!r}: the strictest reading", done.out.splitlines()[2:], [f"total={3 * GIB} total=0: 0", "alloc=3073m: 2"])
        expect(f"{value!r}: lines {done.err!r}", (done.err.count("\n"), "RATION_LIMIT" in done.err), (1, True))


def set_by_itself(_):
    """Scripts set variables after they have loaded everything, and some too late."""
    done = run("steps", "set=RATION_LIMIT=1GiB", "init", "context=0", "total=0", "set=RATION_LIMIT=3GiB", "total=0", "alloc=1100m",
               "set=RATION_LIMIT", "alloc=1100m", "alloc=900m", **MACHINE)
    expect("total", [line.split()[0] for line in done.out.splitlines() if line.startswith("total")], [f"total={GIB}"] * 2)
    expect("codes", [line[-1] for line in done.out.splitlines() if line.startswith("alloc")], ["2", "2", "0"])


def forks_after_nvml(_):
    """What NVML's figures need does not keep a child from using CUDA."""
    for program in ("monitor", "monitor_linked"):
        for limit in ("1GiB", "25%"):
            done = run(program, "start", "index=0", "fork", "index=0", "init", "context=0", "alloc=100", "memory", RATION_LIMIT=limit,
                       RATION_MODE="direct", **MACHINE)
            expect(f"status: {done.err}", done.status, 0)
            said = [json.loads(line) for line in done.out.splitlines()]
            expect("total", [said[0]["v1"][0], said[1]["v1"][0], said[2]["total"]], [GIB] * 3)
            expect("free", said[2]["free"], GIB - 100 * MIB)


CASES = {f"neighbours change nothing of what a program has left, {mode}": undisturbed(mode) for mode in MODES}
CASES |= {f"memory in many pieces needs few descriptors, {way}": few_descriptors(way) for way in WAYS}
if not SANITIZED:  # its runtime reports what a handler does, and is the allocator itself
    CASES |= {f"a handler may end the program amid a call, {way}": exits_in_a_handler(way) for way in WAYS}
    CASES |= {f"libraries that ask libc in every call, {order} us, {way}": beside_one_that_asks(order, way)
              for order in ("before", "after") for way in WAYS}
main(CASES | {"values as other tools write them": as_others_write_them, "variables that a program sets by itself": set_by_itself,
              "a child of a program that asked NVML": forks_after_nvml})
