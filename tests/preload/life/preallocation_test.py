#!/usr/bin/env python3
"""Which slabs mode pool takes and releases, and when. ROWS have steps.cc's ops and the records expected in the log, in
order, over slabs: `2m` a slab that grew, `P1g` a preallocated one, `-2m` a released one, `a` an allocation, `f` a free, `x:limit` a
denial. `s`, `P`, `-` accept any size; `P~900m` allows up to 2 MiB less."""
import pathlib
import re
import subprocess

from harness import GIB, MIB, PROGRAMS, clean_environment, driver_folder, expect, expect_that, main, of_type, run
from log_books import added_up

CONTEXT = 256 * MIB  # the device memory that each context costs
MACHINE = {"SIMCUDA_DEVICES": "4GiB", "SIMCUDA_CONTEXT_BYTES": str(CONTEXT)}
SLACK = 64 << 10  # tolerance of a free figure: ends of blocks


def settings(**asked):
    return {"RATION_MODE": "pool", "RATION_BACKING": "slab"} | {f"RATION_{key.upper()}": str(value) for key, value in asked.items()}


LIMITED = settings(limit="1GiB")
AT_ONCE = settings(limit="1GiB", preallocate_after=0)
GROWING = settings(limit="1GiB", preallocate="false")


def steps(folder, ops, environment):
    done = run("steps", "init", *ops.split(), folder=folder, **MACHINE | environment)
    expect_that(f"status {done.status}: {done.out} {done.err}", done.status == 0 and done.err == "")
    records = done.logs["run.jsonl"]
    expect("mode", records[0]["mode"], "pool")
    added_up(records, {device["dev"]: device["limit"] for device in records[0]["devices"]})
    codes = [int(line.rsplit(": ", 1)[1]) for line in done.out.splitlines()]
    expect("refusals", codes.count(2), len(of_type(records, "oom")))
    return done, records


def shown(records):
    signs = {"slab_alloc": "", "slab_free": "-", "alloc": "a", "free": "f"}
    for record in records:
        kind = record["t"]
        if kind in ("slab_alloc", "slab_free"):
            yield ("P" if record.get("why") in ("preallocate", "check") else signs[kind]), record["size"]
        elif kind in ("alloc", "free"):
            yield signs[kind], None
        elif kind == "oom":
            yield f"x:{record['reason']}", None


def size_of(text):
    number, unit = re.fullmatch(r"(\d+)([kmg]?)", text).groups()
    return int(number) << {"": 0, "k": 10, "m": 20, "g": 30}[unit]


def matches(word, sign, size):
    slab = re.fullmatch(r"([P-]?)(~?)(\d+[kmg]?)", word)
    if slab is None:
        return {"s": ""}.get(word, word) == sign
    least = size_of(slab[3]) - (2 * MIB if slab[2] else 0)
    return slab[1] == sign and size is not None and least <= size <= size_of(slab[3])


def merged(records):
    """A preallocation of granules as one of a slab; ranges hold no memory."""
    whole = []
    for sign, size in shown(records):
        if sign == "P" and whole and whole[-1][0] == "P":
            whole[-1] = "P", whole[-1][1] + size
        elif size != 0:
            whole.append((sign, size))
    return whole


def as_wanted(records, log):
    seen, wanted = merged(records), log.split()
    fits = len(seen) == len(wanted) and all(matches(word, *each) for word, each in zip(wanted, seen))
    expect_that(f"log: {' '.join(sign + str(size or '') for sign, size in seen)}, expected: {log}", fits)


def row(ops, log, environment):
    def case(folder):
        as_wanted(steps(folder, ops, environment)[1], log)
    return case


def of_granules(log):
    """What granules take of a preallocation: whole pages."""
    return re.sub(r"P~?(?=[0-9])", "P~", log)


ROWS = {
    "a process that only queries takes nothing": ("context=0 query total=0 free_null", "", LIMITED),
    "small allocations get a small slab": ("context=0 alloc=1k alloc=5k alloc=1m free=1", "2m a a a f", LIMITED),
    "small slabs double": (f"context=0 {'alloc=1m ' * 12}", f"2m a a 4m {'a ' * 4} 8m {'a ' * 6}", LIMITED),
    "everything at the first allocation": ("context=0 alloc=1k alloc=1m", "P1g a a", AT_ONCE),
    "a large first allocation": ("context=0 alloc=100m alloc=1k", "P1g a a", LIMITED),
    "preallocated later, as asked": ("context=0 alloc=100m alloc=100m alloc=700m", "s a P a a",
                                     settings(limit="1GiB", preallocate_after="150MiB")),
    "a share of the device": ("context=0 alloc=100m", "P1g a", settings(limit="25%")),
    "a limit of odd bytes": ("context=0 alloc=1k", "P99999744 a", settings(limit="100000001", preallocate_after=0)),
    "a size, and beyond it on demand": ("context=0 alloc=100m alloc=150m alloc=500m", "P300m a a s a",
                                        settings(limit="1GiB", preallocate="300MiB")),
    "a size beyond the limit": ("context=0 alloc=100m", "P1g a", settings(limit="1GiB", preallocate="2GiB")),
    "never": (f"context=0 {'alloc=1m ' * 12} alloc=100m", f"2m a a 4m {'a ' * 4} 8m {'a ' * 6} s a", GROWING),
    "never, and the whole limit is available": ("context=0 alloc=1m free=0 alloc=1g", "2m a f -2m 1g a", GROWING),
    "three quarters where it was asked without a limit": ("context=0 alloc=100m alloc=2900m alloc=500m", "P3g a a s a",
                                                          settings(preallocate="true")),
    "all but the headroom": ("context=0 alloc=100m", "P3328m a", settings(limit="100%")),
    "no headroom": ("context=0 alloc=100m", "P3840m a", settings(limit="100%", headroom=0)),
    "a headroom of a size": ("context=0 alloc=100m", "P2816m a", settings(limit="100%", headroom="1GiB")),
    "a headroom of a share": ("context=0 alloc=100m", "P2816m a", settings(limit="100%", headroom="25%")),
    "a large device's headroom": ("context=0 alloc=100m", f"P{(64 * GIB - CONTEXT - 64 * GIB // 50) // 512 * 512} a",
                                  settings(limit="100%") | {"SIMCUDA_DEVICES": "64GiB"}),
    "beyond the headroom on demand": ("context=0 alloc=3000m alloc=400m", "P3328m a s a", settings(limit="100%")),
    "nine tenths where the whole size is refused": ("context=0 alloc=1k", "P~966367641 a", AT_ONCE | {"SIMCUDA_FAIL": "cuMemAlloc_v2@1:2"}),
    "nine tenths of that": ("context=0 alloc=1k", "P~869730877 a",
                            AT_ONCE | {"SIMCUDA_FAIL": "cuMemAlloc_v2@1:2,cuMemAlloc_v2@2:2"}),
    "each device preallocates its own": ("context=0 alloc=100m context=1 alloc=100m", "P1g a P2g a",
                            settings(limit="0=1GiB,1=2GiB") | {"SIMCUDA_DEVICES": "2x4GiB"}),
    "a second context does not preallocate": ("context=0 alloc=100m context=0 alloc=100m alloc=1m", "P300m a s a s a",
                                              settings(limit="1GiB", preallocate="300MiB")),
    "another context's slab is given back": ("context=0 alloc=100m free=0 context=0 alloc=1000m", "s a f - s a", GROWING),
    "the preallocated slab is given back": ("context=0 alloc=100m free=0 context=0 alloc=1000m", "P1g a f -1g s a", LIMITED),
    "a slab with a live block is not given back": (
        "context=0 alloc=100m context=0 alloc=100m current=0 free=0 current=1 alloc=100m", "P1g a x:pool_holds f -1g s a", LIMITED),
    "a context after the end of the only one preallocates again": ("context=0 alloc=100m destroy=0 context=0 alloc=1000m",
                                                                 "P1g a f -1g P1g a", LIMITED),
    "a full slab is refused by the limit": ("context=0 alloc=600m alloc=600m", "P1g a x:limit", LIMITED),
    "the smallest limit": ("context=0 alloc=1m alloc=1 free=0 alloc=1m", "1m a x:limit f a", settings(limit="1MiB")),
    "a limit of whole blocks": ("context=0 alloc=21m alloc=21m alloc=21m alloc=1m alloc=1", "P64m a a a a x:limit",
                                settings(limit="64MiB", preallocate_after=0)),
    "a synchronous free": ("context=0 alloc=100m free=0 alloc=1000m free=1", "P1g a f a f", LIMITED | {"RATION_FREE": "synchronous"}),
}


def lazy(folder):
    """The whole limit is taken by the call that makes 32 MiB live, not before."""
    _, records = steps(folder, f"context=0 {'alloc=1m ' * 40} alloc=900m", LIMITED)
    live, before = 0, 0
    for record in records:
        if record["t"] == "slab_alloc" and record["why"] == "preallocate":
            break
        live += record["size"] if record["t"] == "alloc" else 0
        before += record["size"] if record["t"] == "slab_alloc" else 0
    expect_that(f"preallocated with {live / MIB} MiB live", 31 * MIB <= live <= 32 * MIB)
    expect_that(f"{before} bytes in slabs before", before <= 64 * MIB)
    expect("held", sum(record["size"] for record in of_type(records, "slab_alloc")), GIB)
    expect("preallocated", [one["why"] for one in of_type(records, "slab_alloc")].count("preallocate"), 1)


def trims(folder):
    """A slab that is released for another request is recorded."""
    _, records = steps(folder, "context=0 alloc=100m free=0 context=0 alloc=1000m", LIMITED)
    expect("trim", [(one["dev"], one["slabs"], one["bytes"], one["api"]) for one in of_type(records, "trim")],
           [(0, 1, GIB, "cuMemAlloc_v2")])


def refusal(folder):
    """The record of a denial says what held the memory."""
    _, records = steps(folder, "context=0 alloc=100m context=0 alloc=200m", LIMITED)
    oom = of_type(records, "oom")[0]
    expect("oom", {key: oom[key] for key in ("reason", "req", "used", "reserved", "limit", "api", "dev")},
           {"reason": "pool_holds", "req": 200 * MIB, "used": 100 * MIB, "reserved": GIB, "limit": GIB,
            "api": "cuMemAlloc_v2", "dev": 0})


# name: (ops before the query, settings, free bytes, total bytes)
QUERIES = {
    "before": ("", LIMITED, GIB, GIB),
    "with little": ("alloc=1m", LIMITED, GIB - MIB, GIB),
    "preallocated": ("alloc=100m", LIMITED, 924 * MIB, GIB),
    "all of it free again": ("alloc=100m free=0", LIMITED, GIB, GIB),
    "full": ("alloc=1000m", LIMITED, 24 * MIB, GIB),
    "grown": ("alloc=100m alloc=1m", GROWING, 923 * MIB, GIB),
    "a limit that is not shown": ("alloc=100m", LIMITED | {"RATION_SHOW_LIMIT": "false"}, 924 * MIB, 4 * GIB),
    "no limit": ("", settings(), 4 * GIB - CONTEXT, 4 * GIB),
    "no limit, preallocated": ("alloc=100m", settings(), 4 * GIB - CONTEXT - 100 * MIB, 4 * GIB),
    "a limit beyond what is free": ("alloc=100m", settings(limit="100%"), 4 * GIB - CONTEXT - 100 * MIB, 4 * GIB),
}


def query(ops, environment, free, total):
    def case(folder):
        done, _ = steps(folder, f"context=0 {ops} query total=0", environment)
        seen = re.search(r"free=(\d+) total=(\d+) query: 0\ntotal=(\d+) ", done.out)
        expect("total", (int(seen[2]), int(seen[3])), (total, total))
        expect_that(f"free: {seen[1]}, expected {free}", free - SLACK <= int(seen[1]) <= free)
    return case


def beside_a_neighbour(ops, log, environment, free=None):
    """Another process of the same machine, without Ration, holds 2,800 MiB beside its context."""
    def case(folder):
        machine = pathlib.Path(folder) / "machine"
        machine.mkdir()
        shared = MACHINE | {"SIMCUDA_MACHINE": str(machine)}
        neighbour = subprocess.Popen([PROGRAMS / "steps", "init", "context=0", "alloc=2800m", "pause"], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True,
                                     env=clean_environment() | shared | {"LD_LIBRARY_PATH": str(driver_folder("sim"))})
        try:
            lines = [neighbour.stdout.readline() for _ in range(3)]
            expect("the neighbour", lines[2], "alloc=2800m: 0\n")
            # What the neighbour holds could be contexts, for all that is known.
            done, records = steps(folder, ops, {"RATION_HEADROOM": "512MiB"} | environment | shared)
            as_wanted(records, log)
            if free is not None:
                seen = int(re.search(r"free=(\d+)", done.out)[1])
                expect_that(f"free: {seen}, expected {free}", free - SLACK <= seen <= free)
        finally:
            neighbour.stdin.close()
            neighbour.wait()
    return case


# The neighbour leaves 4,096 - 2,800 - 2 * 256 = 784 MiB; minus the headroom of 512: 272.
CASES = {name: row(*each) for name, each in ROWS.items()}
CASES |= {f"free and total: {name}": query(*each) for name, each in QUERIES.items()}
# What is preallocated, and when, is the same with granules.
CASES |= {f"granules: {name}": row(ops, of_granules(log), environment | {"RATION_BACKING": "vmm"})
          for name, (ops, log, environment) in ROWS.items()
          if re.fullmatch("(P[0-9]+[kmg]? |a |f |x:limit )*", log + " ") and "RATION_BACKING" in environment and "SIMCUDA_FAIL" not in environment}
CASES |= {f"granules: free and total: {name}": query(ops, environment | {"RATION_BACKING": "vmm"}, *figures)
          for name, (ops, environment, *figures) in QUERIES.items()}
CASES |= {
    "preallocated at 32 MiB live": lazy,
    "a released slab is recorded": trims,
    "a denial is recorded with its cause": refusal,
    "beside a neighbour, the rest minus the headroom": beside_a_neighbour("context=0 alloc=1k", "P272m a", AT_ONCE),
    "beside a neighbour, beyond the headroom on demand": beside_a_neighbour(
        "context=0 alloc=1k alloc=500m alloc=100m", "P272m a s a a", AT_ONCE),
    "beside a neighbour, refused by the device": beside_a_neighbour("context=0 alloc=1k alloc=600m", "P272m a x:pool_holds", AT_ONCE),
    "beside a neighbour, free memory before": beside_a_neighbour("context=0 query", "", LIMITED, free=784 * MIB),
    "beside a neighbour, free memory after": beside_a_neighbour("context=0 alloc=1k query", "P272m a", AT_ONCE, free=784 * MIB),
}
main(CASES)
