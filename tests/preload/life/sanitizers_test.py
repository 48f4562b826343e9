#!/usr/bin/env python3
"""sanitizers_test.py LIBASAN LIBJEMALLOC [all]: programs built for a sanitizer (neighbour.cc), alone and with other preloads
before or after Ration: looked up in mode pool and linked in mode direct, or all of both. Each also runs without Ration, with
the same other preloads."""
import functools
import itertools
import pathlib
import re
import subprocess
import sys

from harness import (BUILD, LIBRARY, PROGRAMS, clean_environment, driver_folder, expect, expect_that,
                     main, of_type, run)
from log_books import added_up

if len(sys.argv) < 3 or not pathlib.Path(sys.argv[2]).exists():
    sys.exit("libjemalloc.so.2 is not installed: scripts/setup.sh, then configure again")
ASAN, JEMALLOC, *ALL = sys.argv[1:]

KINDS = ("plain", "asan_shared", "asan_static", "tsan_shared", "tsan_static", "ubsan")
OTHER_PRELOADS = {
    "alone": [LIBRARY],
    "jemalloc before": [JEMALLOC, LIBRARY],
    "jemalloc after": [LIBRARY, JEMALLOC],
    "an interposer before": [PROGRAMS / "libinterposer.so", LIBRARY],
    "an interposer after": [LIBRARY, PROGRAMS / "libinterposer.so"],
    "a wrapper before": [PROGRAMS / "libinterposer_wraps.so", LIBRARY],
    "a wrapper after": [LIBRARY, PROGRAMS / "libinterposer_wraps.so"],
}
LINKS, MODES = ("neighbour", "neighbour_linked"), ("pool", "direct")
WAYS = list(itertools.product(LINKS, MODES) if ALL else zip(LINKS, MODES))
# g++ 12's shared ThreadSanitizer does not reach main() beside jemalloc, with or without Ration.
CANNOT = {("tsan_shared", "jemalloc before"), ("tsan_shared", "jemalloc after")}
# 10 blocks of 100 MiB, from one slab: otherwise the number of small slabs would depend on the timing of the threads.
LIMIT = {0: 1088 << 20}
DEVICE = {"SIMCUDA_DEVICES": "3GiB", "RATION_PREALLOCATE_AFTER": "0"}


def preload_of(kind, libraries):
    """A shared AddressSanitizer requires the first place, and checks it."""
    return ":".join(map(str, ([ASAN] if kind == "asan_shared" else []) + libraries))


def seen(done):
    line = re.fullmatch(r"wrong=(\d+) first=(\d+) second=(\d+) code=(\d+) null=(\d)\n", done.out)
    expect_that(f"status {done.status}, {done.out!r} {done.err[:2000]!r}", done.status == 0 and line)
    return tuple(map(int, line.groups()))


@functools.cache
def without_ration(program, preload):
    done = run(program, preload=preload, **DEVICE)
    expect("without Ration", seen(done), (0, 28, 28, 2, 1))
    return done


def with_preloads(link, kind, who, mode):
    program = f"{link}_{kind}"

    def case(folder):
        others = [library for library in OTHER_PRELOADS[who] if library != LIBRARY]
        plain = without_ration(program, preload_of(kind, others) or None)
        done = run(program, preload=preload_of(kind, OTHER_PRELOADS[who]), folder=folder, RATION_MODE=mode,
                   RATION_LIMIT=str(LIMIT[0]), **DEVICE)
        expect("with Ration", seen(done), (0, 10, 10, 2, 1))
        expect("stderr", done.err, plain.err)
        added_up(done.logs["run.jsonl"], LIMIT)
        expect("refusals", [one["reason"] for one in of_type(done.logs["run.jsonl"], "oom")], ["limit"] * 2)
    return case


def by_command(link, kind, mode):
    """`ration run` places the library where the program's own runtime allows it."""
    program = f"{link}_{kind}"

    def case(folder):
        command = [BUILD / "bin/ration", "run", "--limit", str(LIMIT[0]), "--mode", mode, "--", PROGRAMS / program]
        environment = clean_environment() | DEVICE | {"LD_LIBRARY_PATH": str(driver_folder("sim"))}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, cwd=folder, check=False)
        expect_that(f"{done.returncode} {done.stdout!r} {done.stderr!r}",
                    (done.returncode, done.stdout) == (0, "wrong=0 first=10 second=10 code=2 null=1\n"))
    return case


CASES = {f"{kind}, {link}, {who}, {mode}": with_preloads(link, kind, who, mode)
         for kind, (link, mode), who in itertools.product(KINDS, WAYS, OTHER_PRELOADS)
         if (kind, who) not in CANNOT}
CASES |= {f"{kind}, {link}, by ration run, {mode}": by_command(link, kind, mode)
          for kind, (link, mode) in itertools.product(KINDS, WAYS)}
main(CASES)
