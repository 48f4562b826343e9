#!/usr/bin/env python3
"""A fork while another thread is in the first call, in which Ration's core is loaded (forks_at_start.cc)."""
import errno
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "preload"))
from harness import LIBRARIES, PROGRAMS, expect, main, run  # noqa: E402


LONGEST_WAIT = 50  # milliseconds, after which a fork goes on: then this process shows nothing
TRIES = 40


def first_use(mode):
    def case(_):
        for _ in range(TRIES):
            done = run("forks_at_start", preload=f"{LIBRARIES}:{PROGRAMS / 'libloading.so'}", RATION_LIMIT="1GiB", RATION_MODE=mode)
            expect("standard error", done.err, "")
            expect("status", done.status, 0)
            answers, _, waited = done.out.strip().rpartition(" waited=")
            if int(waited) < LONGEST_WAIT:
                break
        expect("the child, and errno of the first call", answers, f"loaded=1 init=0 alloc=0 signal=0 errno={errno.EXDEV}")
    return case


main({f"a child that is forked meanwhile has all of the core, mode {mode}": first_use(mode) for mode in ("direct", "pool")})
