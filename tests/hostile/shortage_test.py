#!/usr/bin/env python3
"""A program without a descriptor at its first call, and with some later: the limit holds then (shortage.cc)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "preload"))
from harness import expect, expect_that, main, run  # noqa: E402


def later(mode):
    def case(_):
        done = run("shortage", RATION_LIMIT="1GiB", RATION_MODE=mode)
        expect("status, and what it says", (done.status, done.out), (0, "first=0 refused=2 context=0 beyond=2 within=0 free=0\n"))
        line, = done.err.splitlines()
        expect_that(f"the line: {line}", "cannot load its core" in line and "every allocation is refused until it can be" in line)
    return case


main({f"mode {mode}": later(mode) for mode in ("direct", "pool", "async")})
