#!/usr/bin/env python3
"""Failures seen in other software of this kind (tests/failures.txt): cases_test.py PART runs each case of that part of
the program `failure_cases` in a separate process, in mode direct and in mode pool."""
import sys

from harness import expect, expect_that, main, run

PART = sys.argv[1]
MACHINE = {"SIMCUDA_DEVICES": "2x4GiB", "SIMCUDA_CONTEXT_BYTES": "1MiB", "RATION_LIMIT": "0=1GiB,1=512MiB"}
MODES = ("direct", "pool")
TINY = {"RATION_LIMIT": "64MiB", "SIMCUDA_CONTEXT_BYTES": "256MiB"}
GROWING = {"RATION_PREALLOCATE": "false"}
SLABS = {"RATION_BACKING": "slab"}  # where a case counts physical memory, or compares with the driver's own answers
SPECIAL = {  # settings beyond the default ones
    "threads that create and release physical memory and free addresses lose no byte of either": SLABS,
    "pointer attributes of each kind of memory stay correct while others are freed": SLABS,
    "memory freed through another function is released with its charge": GROWING,
    "each of several racing requests is counted or refused and never live but uncounted": GROWING,
    "a limit below the size of a context is reported unchanged and usable": TINY,
    "a context charged more than the limit leaves no free memory and nothing wraps": TINY | {"RATION_CHARGE_CONTEXT": "true"},
    "a charged context counts as used memory as on the device itself": {"RATION_CHARGE_CONTEXT": "true"},
    "a reserve of the whole device leaves nothing and is reported as nothing": {"RATION_LIMIT": "", "RATION_RESERVE": "4GiB"},
    "a limit above the device is reported as the device": {"RATION_LIMIT": "32GiB"},
    "without a limit the device is reported unchanged": {"RATION_LIMIT": ""},
    "managed memory that is only counted does not make the used bytes wrap": TINY | {"RATION_MANAGED": "count"},
}

SAID = {"a reserve of the whole device leaves nothing and is reported as nothing": "leaves no memory on device"}  # in each line


def names():
    """The names that Catch2 lists: version 2 by the first flag, version 3 by the others."""
    for flags in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):
        listed = run("failure_cases", f"[{PART}]", *flags, preload=None).out.splitlines()
        if listed and not listed[0].startswith("Error"):
            return [line.strip() for line in listed if line.strip()]
    return []


def case(name, mode):
    def run_it(folder):
        settings = MACHINE | {"RATION_MODE": mode} | SPECIAL.get(name, {})
        done = run("failure_cases", name.replace(",", "\\,"), folder=folder, **{key: value for key, value in settings.items() if value})
        expect_that(f"status {done.status}, said {done.out} {done.err}", done.status == 0)
        unexpected = [line for line in done.err.splitlines() if name not in SAID or SAID[name] not in line]
        expect("on stderr", (unexpected, done.err != ""), ([], name in SAID))
        end = done.logs["run.jsonl"][-1]
        expect("the log's end", (end["t"], end["unknown_versions"], end["dropped"]), ("end", 0, 0))
    return run_it


main({f"{name}, {mode}": case(name, mode) for name in names() for mode in MODES})
