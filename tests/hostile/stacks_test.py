#!/usr/bin/env python3
"""Threads with small stacks: how much more stack a call needs under Ration than without it."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "preload"))
from harness import SANITIZED, expect, expect_that, main, run  # noqa: E402

MORE = 8 << 10
SMALL = 20 << 10
LIFE = "init context info alloc large refused managed array create async share free synchronize destroy"
CALLS = {  # each begins with another first call
    "alloc": LIFE,
    "total": "total " + LIFE,
    "context": "init retain alloc refused free synchronize",
    "info": "init info context info alloc",
    "refused": "init context refused alloc",
    "share": "init context share alloc share free",
    "child": "total fork " + LIFE,
    "child without a first call": "fork " + LIFE,
}
MODES = ("pool", "direct", "async")
CONFIG = '{"limit": "1GiB", "no-such-key": 1, "rules": [{"match": {"exe": "/**/stacks"}, "set": {"limit": "900MiB"}}]}'


def settings(name, folder):
    folder = pathlib.Path(folder)
    state = {"RATION_STATE_DIR": folder / "state"}
    if name == "limit":
        return {"RATION_LIMIT": "1GiB"}
    if name == "log":
        return {"RATION_LIMIT": "1GiB", "RATION_LOG": folder / "run.jsonl"}
    if name == "group":
        return state | {"RATION_LIMIT": "1GiB", "RATION_GROUP": "g", "RATION_GROUP_LIMIT": "2GiB", "RATION_GUARANTEE": "100MiB",
                        "RATION_LOG": folder / "run.jsonl"}
    if name == "config":
        (folder / "config.json").write_text(CONFIG)
        return {"RATION_CONFIG": folder / "config.json", "RATION_LOG": folder / "run.jsonl"}
    return {"RATION_LIMIT": "1parsec", "RATION_MODE": "no-such-mode"}  # wrong: said on standard error


def depths(words, **environment):
    done = run("stacks", *words.split(), SIMCUDA_DEVICES="4GiB", SIMCUDA_CONTEXT_BYTES="1MiB", **environment)
    expect(f"status; it said {done.out!r} {done.err!r}", done.status, 0)
    return [(call, int(bytes)) for call, bytes in re.findall(r"(\w+)=(\d+),\d+", done.out)]


def bounded(words, given):
    def case(folder):
        native = depths(words, preload="")
        for mode in MODES:
            with_mode = {"RATION_MODE": mode} | settings(given, folder)
            seen = depths(words, **with_mode)
            expect("calls", [call for call, _ in seen], [call for call, _ in native])
            worst = max(((more - plain, call) for (call, more), (_, plain) in zip(seen, native)))
            expect_that(f"mode {mode}: {worst[1]} takes {worst[0]} bytes more, at most {MORE}", SANITIZED or worst[0] <= MORE)
    return case


def small(given):
    """The program's own calls fit, and so do they under Ration."""
    def case(folder):
        for words in CALLS.values():
            for mode in MODES:
                depths(words, STACKS_BYTES=SMALL, **({"RATION_MODE": mode} | settings(given, folder)))
    return case


GIVEN = ("limit", "log", "group", "config", "wrong")
cases = {f"first {name}, with {given}": bounded(words, given) for name, words in CALLS.items() for given in GIVEN}
if not SANITIZED:
    cases |= {f"a stack of 20 KiB, with {given}": small(given) for given in GIVEN}
main(cases)
