#!/usr/bin/env python3
"""The limit as a program sees it (programs/limit_cases.cc, programs/accounts.cc), and the log's agreement with it."""
import json
import random
from collections import Counter

from harness import GIB, MIB, expect, expect_that, main, of_type, peak_of, run


def held_to_the_limit(records, limits):
    live = Counter()
    for record in records:
        if record["t"] == "alloc":
            live[record["dev"]] += record["size"]
            expect_that(f"seq {record['seq']}: {live} is more than {limits}", live[record["dev"]] <= limits[record["dev"]])
        elif record["t"] == "free":
            live[record["dev"]] -= record["size"]
    return live


def cases(folder):
    limit = {0: GIB, 1: GIB // 2}
    done = run("limit_cases", folder=folder, SIMCUDA_DEVICES="2x16GiB", RATION_MODE="direct",
               RATION_LIMIT="0=1GiB,1=512MiB")
    expect_that(f"limit_cases: {done.out} {done.err}", done.status == 0)
    records = done.logs["run.jsonl"]
    live = held_to_the_limit(records, limit)
    expect("live at the end", {device: size for device, size in live.items() if size}, {})
    # The end of a context frees its memory; these frees are logged under the call that ended it.
    ended_by = Counter(record["api"] for record in of_type(records, "free"))
    for api in ("cuCtxDestroy_v2", "cuCtxDestroy", "cuCtxDetach", "cuDevicePrimaryCtxRelease_v2",
                "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2", "cuMemFree_v2", "cuMemFreeAsync",
                "cuMemFreeAsync_ptsz"):
        expect_that(f"no free by {api}: {ended_by}", ended_by[api] > 0)
    expect("live in the end record", [d["bytes"] for d in records[-1]["live"]], [0, 0])


def accounts(mode, slack, **settings):
    """`slack`: bytes of the limit that a pool cannot allocate."""
    def case(folder):
        limit, seed = 512 * MIB, random.randrange(1 << 24)
        print(f"seed {seed}")
        done = run("accounts", str(limit), str(seed), str(slack), folder=folder, RATION_MODE=mode,
                   RATION_LIMIT=str(limit), **settings)
        expect_that(f"accounts: {done.out} {done.err}", done.status == 0)
        records = done.logs["run.jsonl"]
        expect("live at the end", sum(held_to_the_limit(records, {0: limit}).values()), 0)
        end = records[-1]
        expect("end", (end["t"], end["peak"], end["allocs"], end["frees"], end["ooms"]),
               ("end", [peak_of(records)], *(len(of_type(records, kind)) for kind in ("alloc", "free", "oom"))))
    return case


def zero_bytes(mode):
    """The driver refuses zero bytes, also in a process whose contexts have taken it beyond its limit."""
    def case(folder):
        steps = ["steps", "init", "context=0", "context=0", "alloc=0", "managed=0", "pitched=0"]
        machine = {"SIMCUDA_CONTEXT_BYTES": "16MiB"}
        plain = run(*steps, preload=None, **machine)
        under = run(*steps, RATION_MODE=mode, RATION_LIMIT="20MiB", RATION_CHARGE_CONTEXT="true", **machine)
        expect("codes", under.out, plain.out)
        refused = run(*steps, "alloc=1", RATION_MODE=mode, RATION_LIMIT="20MiB", RATION_CHARGE_CONTEXT="true", **machine)
        expect("one byte", refused.out.splitlines()[-1], "alloc=1: 2")
    return case


def beyond_any_device(mode):
    """Without a limit, a request that no device could serve is refused at once."""
    def case(folder):
        done = run("steps", "init", "context=0", f"alloc={1 << 51}", f"alloc={(1 << 64) - 1}", "managed=4611686018427387904",
                   "alloc=1m", folder=folder, RATION_MODE=mode)
        expect("codes", [line.rsplit(" ", 1)[1] for line in done.out.splitlines()[2:]], ["2", "2", "2", "0"])
        expect("reasons", {record["reason"] for record in of_type(done.logs["run.jsonl"], "oom")}, {"device"})
    return case


def tiny_blocks(route):
    """The driver rounds a block up to 512 bytes at least: no more blocks are live than a device of that size has."""
    def case(folder):
        fit = MIB // 512
        done = run("steps", "init", "context=0", *[f"{route}=1"] * (fit + 1), "query", RATION_MODE="direct", RATION_LIMIT="1MiB")
        *codes, query = done.out.splitlines()[2:]
        expect("served", Counter(codes), {f"{route}=1: 0": fit, f"{route}=1: 2": 1})
        expect("free", query, f"free=0 total={MIB} query: 0")
    return case


def to_the_last_byte(folder):
    limit, first = MIB + 100, 1000 * 512
    done = run("steps", "init", "context=0", f"alloc={first - 100}", f"alloc={limit - first}", "query", "free=0", "free=1", f"alloc={limit}",
               RATION_MODE="direct", RATION_LIMIT=str(limit))
    expect("codes", [line.rsplit(" ", 1)[1] for line in done.out.splitlines()], ["0"] * 8)
    expect_that(done.out, "free=0 " in done.out)


def show_limit_off(folder):
    done = run("probe", folder=folder, RATION_LIMIT="1GiB", RATION_SHOW_LIMIT="false")
    expect_that(f"{done.out} {done.err}", "total=17179869184" in done.out and "blocks=10 code=2" in done.out)


def json_numbers(folder):
    """Sizes in the log are JSON integers, exact to the byte."""
    done = run("looked_up", "soname", "dlsym", folder=folder, RATION_LIMIT="40%")
    expect("meta", json.dumps(done.logs["run.jsonl"][0]["devices"][0]["limit"]), str(int(16 * GIB * 0.4)))


main({f"blocks of one byte, {route}": tiny_blocks(route) for route in ("alloc", "managed")}
     | {f"a request beyond any device in mode {mode}": beyond_any_device(mode) for mode in ("pool", "async", "direct")}
     | {f"zero bytes beyond the limit in mode {mode}": zero_bytes(mode) for mode in ("pool", "async", "direct")} | {"a program sees its limit": cases, "threads keep within it": accounts("direct", 0),
      "threads keep within it, a pool": accounts("pool", 64 << 10),
      "threads keep within it, a pool that grows": accounts("pool", 64 << 10, RATION_PREALLOCATE="false"),
      "a limit of odd size is used to the last byte": to_the_last_byte, "an unshown limit holds": show_limit_off, "a share is a whole number of bytes": json_numbers})
