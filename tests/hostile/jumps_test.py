#!/usr/bin/env python3
"""Calls that the program never returns from: it jumps out of a callback, or out of a signal handler meanwhile."""
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "preload"))
from harness import LIBRARIES, PROGRAMS, expect, expect_that, main, run  # noqa: E402

CALLS = re.findall(r'^    \{"(\w+)"', (TESTS / "hostile/jumps.cc").read_text(), re.MULTILINE)
LEAVING = ("longjmp", "signal", "alternate", "coroutine")
STAYING = ("call", "signal_call", "alternate_call")
MODES = ("pool", "direct", "async")
REFUSED, GIVEN = 2, 0


# Driver calls of ours, for a free that waits until its block is clean.
WITHIN = ("cuCtxRecordEvent", "cuEventQuery", "cuCtxGetCurrent")


def codes(way, call, place, mode, *within, **settings):
    done = run("jumps", way, call, place, *within, **settings, RATION_LIMIT="1GiB", RATION_MODE=mode, RATION_PREALLOCATE="false",
               SIMCUDA_DEVICES="16GiB")
    expect(f"status of {way} {call} {place} {mode}, which said {done.out!r} {done.err!r}", done.status, 0)
    expect("standard error", done.err, "")
    return {when: tuple(map(int, seen.split(","))) for when, seen in re.findall(r"(\w+)=(-?[\d,]+)", done.out)}


def left(way, place):
    def case(_):
        met = 0
        for mode in MODES:
            for call in CALLS:
                seen = codes(way, call, place, mode)
                if "left" in seen or (way == "coroutine" and "returned" not in seen):
                    continue  # in this mode it asks nothing of the driver
                met += 1
                for when in ("later", "again", *(("returned",) if way == "coroutine" else ()), "elsewhere"):
                    expect(f"mode {mode}, {call}: too much, then little, {when}", seen[when], (REFUSED, GIVEN))
        expect_that(f"most calls were left: {met}", met > len(CALLS) * 2)
    return case


def left_within(way):
    def case(_):
        for function in WITHIN:
            seen = codes(way, "cuMemFree_v2", "same", "pool", function, RATION_FREE="synchronous")
            expect_that(f"{function} is called", "left" not in seen)
            for when in ("later", "again", "elsewhere"):
                expect(f"{function}: too much, then little, {when}", seen[when], (REFUSED, GIVEN))
    return case


def first(_):
    """A handler jumps out of the first call, in which Ration starts; and out of every later try."""
    done = run("jumps", "signal", "cuMemFree_v2", "first", preload=f"{LIBRARIES}:{PROGRAMS / 'libraising.so'}",
               RATION_LIMIT="1GiB", RATION_PREALLOCATE="false", SIMCUDA_DEVICES="16GiB")
    expect(f"status, having said {done.out!r}", done.status, 0)
    expect("standard error", done.err, "")
    expect("later", re.findall(r"later=(\S+)", done.out), [f"{REFUSED},{GIVEN}"])


def stayed(way):
    """Calls from inside another call are the driver's own business."""
    def case(_):
        for mode in MODES:
            seen = codes(way, "cuCtxSynchronize", "same", mode)
            expect(f"mode {mode}: inside", seen["inside"], (GIVEN,))
            expect(f"mode {mode}: the call itself", seen["left"], (0,))
            expect(f"mode {mode}: later", seen["later"], (REFUSED, GIVEN))
    return case


cases = {f"left by {way}, later calls are {place}": left(way, place)
         for way in LEAVING for place in ("same", "deeper", "shallower")}
cases |= {f"a call of Ration's own is left by {way}": left_within(way) for way in ("longjmp", "signal")}
cases["a first call is left by a signal"] = first
cases |= {f"a call from inside another: {way}": stayed(way) for way in STAYING}
main(cases)
