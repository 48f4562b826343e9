#!/usr/bin/env python3
"""sanitizers_test.py LIBASAN LIBJEMALLOC: programs built for a sanitizer (neighbour.cc), alone and beside other preloads
that stand before or behind Ration, in mode pool and direct. Each also runs without Ration in the same company."""
import functools
import itertools
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from harness import (BUILD, LIBRARY, PROGRAMS, clean_environment, driver_folder, expect, expect_that,  # noqa: E402
                     main, of_type, run)
from log_books import added_up  # noqa: E402

if len(sys.argv) != 3 or not pathlib.Path(sys.argv[2]).exists():
    sys.exit("libjemalloc.so.2 is not installed: scripts/setup.sh, then configure again")
ASAN, JEMALLOC = sys.argv[1:]

KINDS = ("plain", "asan_shared", "asan_static", "tsan_shared", "tsan_static", "ubsan")
LINKS = ("neighbour", "neighbour_linked")
COMPANY = {
    "alone": [LIBRARY],
    "jemalloc before": [JEMALLOC, LIBRARY],
    "jemalloc behind": [LIBRARY, JEMALLOC],
    "an interposer before": [PROGRAMS / "libinterposer.so", LIBRARY],
    "an interposer behind": [LIBRARY, PROGRAMS / "libinterposer.so"],
    "a wrapper before": [PROGRAMS / "libinterposer_wraps.so", LIBRARY],
    "a wrapper behind": [LIBRARY, PROGRAMS / "libinterposer_wraps.so"],
}
MODES = ("pool", "direct")
# g++ 12's shared ThreadSanitizer does not get as far as main() beside jemalloc, whatever else is there.
CANNOT = {("tsan_shared", "jemalloc before"), ("tsan_shared", "jemalloc behind")}
# 10 blocks of 100 MiB, from one slab: how many small ones the threads leave behind otherwise is a matter of their timing.
LIMIT = {0: 1088 << 20}
DEVICE = {"SIMCUDA_DEVICES": "3GiB", "RATION_PREALLOCATE_AFTER": "0"}


def preload_of(kind, libraries):
    """A shared AddressSanitizer insists on standing first, and says so itself."""
    return ":".join(map(str, ([ASAN] if kind == "asan_shared" else []) + libraries))


def seen(done):
    line = re.fullmatch(r"wrong=(\d+) first=(\d+) second=(\d+) code=(\d+) untouched=(\d)\n", done.out)
    expect_that(f"status {done.status}, {done.out!r} {done.err[:2000]!r}", done.status == 0 and line)
    return tuple(map(int, line.groups()))


@functools.cache
def without_ration(program, preload):
    done = run(program, preload=preload, **DEVICE)
    expect("without Ration", seen(done), (0, 28, 28, 2, 1))
    return done


def company(link, kind, who, mode):
    program = f"{link}_{kind}"

    def case(folder):
        others = [library for library in COMPANY[who] if library != LIBRARY]
        plain = without_ration(program, preload_of(kind, others) or None)
        done = run(program, preload=preload_of(kind, COMPANY[who]), folder=folder, RATION_MODE=mode,
                   RATION_LIMIT=str(LIMIT[0]), **DEVICE)
        expect("with Ration", seen(done), (0, 10, 10, 2, 1))
        expect("stderr", done.err, plain.err)
        added_up(done.logs["run.jsonl"], LIMIT)
        expect("refusals", [one["reason"] for one in of_type(done.logs["run.jsonl"], "oom")], ["limit"] * 2)
    return case


def by_command(link, kind, mode):
    """`ration run` puts the library where the program's own runtime lets it."""
    program = f"{link}_{kind}"

    def case(folder):
        command = [BUILD / "bin/ration", "run", "--limit", str(LIMIT[0]), "--mode", mode, "--", PROGRAMS / program]
        environment = clean_environment() | DEVICE | {"LD_LIBRARY_PATH": str(driver_folder("sim"))}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, cwd=folder, check=False)
        expect_that(f"{done.returncode} {done.stdout!r} {done.stderr!r}",
                    (done.returncode, done.stdout) == (0, "wrong=0 first=10 second=10 code=2 untouched=1\n"))
    return case


CASES = {f"{kind}, {link}, {who}, {mode}": company(link, kind, who, mode)
         for kind, link, who, mode in itertools.product(KINDS, LINKS, COMPANY, MODES)
         if (kind, who) not in CANNOT}
CASES |= {f"{kind}, {link}, by ration run, {mode}": by_command(link, kind, mode)
          for kind, link, mode in itertools.product(KINDS, LINKS, MODES)}
main(CASES)
