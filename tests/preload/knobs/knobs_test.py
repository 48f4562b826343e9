#!/usr/bin/env python3
"""Every row of rows.txt: the effect of a setting on a whole program (knobs.cc), from the first line of its log to its refusal."""
import pathlib
import re
import sys
import tempfile

from harness import GIB, MIB, Failure, expect, expect_that, run

UNITS = {"": 1, "MiB": MIB, "GiB": GIB}
PAGE = 2 * MIB  # of granules
SLACK = 24 * MIB  # what a pool loses at the ends of its slabs, with blocks of 1 MiB
LARGEST_GROWTH = 128 * MIB  # of a pool that was not preallocated, with 41 MiB live


def size(text):
    number, unit = re.fullmatch(r"(\d+)([A-Za-z]*)", text).groups()
    return int(number) * UNITS[unit]


def read_rows():
    section, rows = None, []
    for number, line in enumerate((pathlib.Path(__file__).parent / "rows.txt").read_text().splitlines(), 1):
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            settings, expected = line.split("|")
            environment = {}
            for word in settings.split():
                name, _, value = word.partition("=")
                environment[name] = "" if value == "''" else value.replace("~", " ")
            rows.append((number, section, environment, dict(word.split("=", 1) for word in expected.split())))
    return rows


def check(environment, expected):
    managed = [str(2 * GIB)] if "managed" in expected else []
    with tempfile.TemporaryDirectory() as folder:
        state = {"RATION_STATE_DIR": folder + "/state", "HOME": folder, "XDG_CONFIG_HOME": folder}
        done = run("knobs", *managed, folder=folder, SIMCUDA_DEVICES="4GiB", **{"SIMCUDA_CONTEXT_BYTES": "1"} | state | environment)
    expect_that(f"status {done.status}, {done.err!r}", done.status == 0)
    words = done.out.split()
    reported = {name: int(value) for name, value in zip(words[::2], words[1::2])}
    records = done.logs.get("run.jsonl", [])
    expect("mode", records[0]["mode"] if records else "none", expected.get("mode", "pool"))
    said = expected.get("said", "").replace("~", " ")
    expect_that(f"said {done.err!r}", said in done.err and bool(said) == bool(done.err))
    slack = SLACK
    if expected["limit"] == "none":  # close to the end of the device a pool grows in small steps
        expected, slack = expected | {"limit": "4GiB"}, 64 * MIB
    limit = size(expected["limit"])
    expect_that(f"could have {reported['got'] / MIB} MiB", limit - slack <= reported["got"] <= limit)
    expect("refused", reported["code"], 2)
    expect_that(f"the device held {reported['held']}", reported["held"] <= max(limit, 0))
    total = size(expected.get("total", expected["limit"]))
    expect("total", (reported["total"], reported["device_total"]), (total, total))
    expect_that(f"free {reported['free']}", limit - slack <= reported["free"] <= limit)
    if "managed" in expected:
        expect("managed", reported["managed"], int(expected["managed"]))
    check_growth(reported, expected, has_granules(environment, limit))


def has_granules(environment, limit):
    """Whether every block of the pool is made of granules."""
    slabs = environment.get("RATION_BACKING", "auto") == "slab" or environment.get("RATION_IPC") == "direct"
    slabs = slabs or limit % PAGE > limit // 1024  # design/granules.md, granules by default
    return not slabs and environment.get("RATION_DISABLE") != "1"


def check_growth(reported, expected, granules):
    prealloc, mode = expected.get("prealloc"), expected.get("mode", "pool")
    if prealloc == "no":
        expect_that(f"held {reported['then']}", 41 * MIB <= reported["then"] <= LARGEST_GROWTH)
    elif prealloc is not None:
        expect_that(f"preallocated {reported['then']}", size(prealloc) - (PAGE if granules else MIB) <= reported["then"] <= size(prealloc))
    if expected.get("first") == "yes":
        expect("from the first allocation on", reported["first"], reported["then"])
    elif prealloc is not None:
        expect_that(f"first held {reported['first']}", reported["first"] < 41 * MIB)
    if reported["got"] == 0:
        return
    pooled = mode == "async" and expected.get("pooled") != "no"  # no: the limit is less than a step of the driver's pools
    expect_that(f"calls {reported}", (reported["direct"] == 0) == (pooled or (mode == "pool" and granules)) and (reported["pooled"] > 0) == pooled)


def main():
    rows, wrong = read_rows(), 0
    for number, section, environment, expected in rows:
        try:
            check(environment, expected)
        except Failure as failure:
            wrong += 1
            print(f"rows.txt:{number}: [{section}] {environment}: {failure}", flush=True)
    print(f"covered: {len(rows) - wrong} of {len(rows)}")
    if wrong or not rows:
        sys.exit(1)


main()
