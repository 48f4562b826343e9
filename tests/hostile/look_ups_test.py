#!/usr/bin/env python3
"""Look-ups of names that begin like the driver's, in processes without CUDA."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "preload"))
from harness import LIBRARIES, PROGRAMS, SANITIZED, expect, expect_that, main, run  # noqa: E402

ROUNDS = 200
RACED = 1_000 if SANITIZED else 5_000


def look_ups(*arguments, behind="", **environment):
    done = run("look_ups", *map(str, arguments), preload=LIBRARIES + (f":{PROGRAMS / behind}" if behind else ""), **environment)
    expect(f"status, having said {done.err}", done.status, 0)
    expect("stderr", done.err, "")
    return {key: int(number) for key, number in re.findall(r"(\w+)=(\d+)", done.out)}


def asks_nothing(_):
    seen = look_ups(ROUNDS, behind="libpassing.so")
    expect("names found", seen["found"], 0)
    expect("the preload behind counted", seen["counted"], 1)
    expect("questions for foreign names", seen["foreign"], 0)


def asks_once(_):
    seen = look_ups(ROUNDS, behind="libpassing.so")
    expect("the preload behind counted", seen["counted"], 1)
    expect("names found", seen["found"], 0)
    # For libcuda, for libnvidia-ml, and for libc, which answers that there is no such name.
    expect("questions for the driver's names", seen["drivers"], 3)


def raced(_):
    # A long path makes a search through the names slow, and what is freed is overwritten: a search that goes on in an
    # unloaded library's entry ends in a crash.
    seen = look_ups(RACED, f"{PROGRAMS}/{'./' * 1500}libcoming_and_going.so", MALLOC_PERTURB_=165)
    expect("names found", seen["found"], 0)
    expect_that(f"a library came and went: {seen}", seen["loads"] > 1)


main({
    "names of others are passed on without a question": asks_nothing,
    "a driver that is not loaded is searched for once": asks_once,
    "look-ups while another thread unloads a library": raced,
})
