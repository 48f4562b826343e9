#!/usr/bin/env python3
"""Devices whose memory is the host's (as GB10): limits, queries, preallocation and the command hold there, and NVML goes on
saying that it does not know."""
import json
import pathlib
import re
import subprocess
import sys

from harness import BUILD, GIB, HANG, LIBRARIES, MIB, PROGRAMS, SANITIZED, clean_environment, driver_folder, expect, expect_that, main, of_type, run

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "command/ps"))
from members import Background  # noqa: E402

RATION = BUILD / "bin/ration"
CONTEXT = 256 * MIB
DEVICE = 4 * GIB
MACHINE = {"SIMCUDA_INTEGRATED": "1", "SIMCUDA_DEVICES": str(DEVICE), "SIMCUDA_CONTEXT_BYTES": str(CONTEXT)}
WAYS = {"pool of granules": {"RATION_MODE": "pool", "RATION_BACKING": "vmm"}, "pool of slabs": {"RATION_MODE": "pool", "RATION_BACKING": "slab"},
        "async": {"RATION_MODE": "async"}, "direct": {"RATION_MODE": "direct"}}
ATTRIBUTES = {18: 1, 86: 1, 88: 1, 100: 1, 89: 1, 102: 1, 115: 1, 32: 0}
NOT_SUPPORTED = 3


def steps(ops, folder=None, **settings):
    """What each op printed and answered."""
    done = run("steps", "init", *ops.split(), folder=folder, **(MACHINE | settings))
    expect_that(f"status {done.status}, said {done.err!r}", done.status == 0 and done.err == "")
    return done.out.splitlines()[1:], done.logs


def code_of(line):
    return int(line.rsplit(": ", 1)[1])


def codes(lines):
    return [code_of(line) for line in lines]


def figures(line):
    """(free, total) of a query."""
    return tuple(int(number) for number in re.match(r"free=(\d+) total=(\d+) ", line).groups())


def the_device(_):
    ops = " ".join(f"attribute={which}" for which in ATTRIBUTES) + " total=0"
    wanted = [f"value={value} attribute={which}: 0" for which, value in ATTRIBUTES.items()] + [f"total={DEVICE} total=0: 0"]
    for preload in (None, LIBRARIES):
        expect(f"under {preload}", steps(ops, preload=preload)[0], wanted)
    expect("another device", steps("attribute=18", SIMCUDA_INTEGRATED="")[0], ["value=0 attribute=18: 0"])


def one_memory(_):
    """What is pinned is gone from the device, what is registered is not, and the device's end is that of both."""
    ops = "context=0 query pinned=1g query alloc=1g query pinned=2g unpin=0 pinned=2g pinned=1g query unpin=2 query"
    plain, _ = steps(ops, preload=None)
    # context, query, 1 pinned, query, 1 allocated, query; 2 more do not fit 3.75, without the first they do
    expect("codes", codes(plain), [0, 0, 0, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0])
    free = [figures(line)[0] for line in plain if line.startswith("free=")]
    rest = DEVICE - CONTEXT
    expect("free", free[:3], [rest, rest - GIB, rest - 2 * GIB])
    expect("direct mode is the same", steps(ops, RATION_MODE="direct")[0], plain)
    expect("elsewhere pinned memory is the host's", [figures(line)[0] for line in steps("context=0 query pinned=1g query", preload=None,
                                                                                       SIMCUDA_INTEGRATED="")[0] if line.startswith("free=")], [rest, rest])


def limit_holds(way):
    def case(folder):
        for limit, shown, blocks in ((GIB, GIB, 10), ("50%", DEVICE // 2, 20)):
            elsewhere = run("linked_lazy", RATION_LIMIT=limit, **(MACHINE | WAYS[way] | {"SIMCUDA_INTEGRATED": ""}))
            done = run("linked_lazy", folder=folder, RATION_LIMIT=limit, **(MACHINE | WAYS[way]))
            expect("ended", (done.status, done.out, done.err), (0, elsewhere.out, ""))
            least = blocks - (1 if way == "async" else 0)  # whose pool grows in steps
            expect("blocks", done.out, f"blocks={least} code=2 null=1\n")
            records = done.logs["run.jsonl"]
            expect("peak", records[-1]["peak"], [least * 100 * MIB])
            expect_that("reserved", records[-1]["reserved_peak"][0] <= shown)
            expect("refused", [(record["reason"] in ("limit", "pool_holds"), record["limit"]) for record in of_type(records, "oom")], [(True, shown)])
    return case


def queries_show_it(way):
    def case(_):
        for limit, shown in (("1GiB", GIB), ("50%", DEVICE // 2), ("0.25", DEVICE // 4)):
            lines, _ = steps("total=0 context=0 query alloc=100m query", RATION_LIMIT=limit, RATION_PREALLOCATE="false", **WAYS[way])
            expect("total", lines[0], f"total={shown} total=0: 0")
            expect("at first", figures(lines[2]), (shown, shown))
            expect("with a block", figures(lines[4]), (shown - 100 * MIB, shown))
    return case


def pinned_lowers_free(way):
    """free is what the program can have: what is left of the limit, and of the one memory."""
    def case(_):
        lines, _ = steps("context=0 query pinned=2g query unpin=0 query", RATION_LIMIT="3GiB", RATION_PREALLOCATE="false", **WAYS[way])
        expect("codes", codes(lines), [0] * 6)
        free = [figures(line)[0] for line in lines if line.startswith("free=")]
        expect("free", free, [3 * GIB, DEVICE - CONTEXT - 2 * GIB, 3 * GIB])
    return case


def headroom(way):
    """Preallocation leaves the host what the headroom says, after what the host has pinned."""
    def case(folder):
        lines, logs = steps("context=0 pinned=1g alloc=1m pinned=1000m", folder, RATION_LIMIT=DEVICE, RATION_PREALLOCATE_AFTER="0", RATION_HEADROOM="1GiB", **WAYS[way])
        expect("codes", codes(lines), [0] * 4)
        (peak,) = logs["run.jsonl"][-1]["reserved_peak"]
        left = DEVICE - CONTEXT - GIB - GIB
        expect_that(f"{peak} of {left}", left - 32 * MIB <= peak <= left)
    return case


def pinned_beyond_headroom(way, ops):
    """As on such a device without Ration: a program may pin what it does not use of the device."""
    def case(folder):
        settings = {"RATION_LIMIT": str(DEVICE), "RATION_PREALLOCATE_AFTER": "0", "RATION_HEADROOM": "0"}
        plain, _ = steps(ops, preload=None)
        lines, logs = steps(ops, folder, **settings, **WAYS[way])
        expect("codes", codes(lines), codes(plain))
        expect_that("nothing is refused for memory alone", not of_type(logs["run.jsonl"], "oom"))
    return case


def nvml(variant, codes_wanted):
    def case(_):
        for program in ("monitor", "monitor_linked"):
            for ops in ("start all=0", "start init context=0 alloc=10 all=0 memory"):
                plain = run(program, *ops.split(), preload=None, **MACHINE | {"SIMCUDA_INTEGRATED": variant})
                expect("plain", plain.status, 0)
                first = json.loads(plain.out.splitlines()[0])
                expect("codes", (first["codes"], first["untouched"]), (codes_wanted, True))
                for settings in ({}, {"RATION_LIMIT": "1GiB"}, {"RATION_LIMIT": "50%"}, {"RATION_LIMIT": "50%", "RATION_SHOW_LIMIT": "false"}):
                    done = run(program, *ops.split(), **MACHINE | {"SIMCUDA_INTEGRATED": variant, "RATION_MODE": "direct"} | settings)
                    expect("ended", (done.status, done.err), (0, ""))
                    expect("NVML's answer stands", json.loads(done.out.splitlines()[0]), first)
    return case


def simulated(folder):
    (pathlib.Path(folder) / "machine").mkdir(exist_ok=True)
    return clean_environment() | MACHINE | {"RATION_STATE_DIR": f"{folder}/state", "LD_LIBRARY_PATH": str(driver_folder("sim")),
                                            "SIMCUDA_MACHINE": f"{folder}/machine", "TERM": "xterm"}


def ration(folder, *arguments, **settings):
    done = subprocess.run([RATION, *arguments], env=simulated(folder) | settings, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=HANG, check=False)
    expect(f"{arguments}: {done.stderr!r}", (done.returncode, done.stderr), (0, ""))
    return done.stdout


def seen_by_the_command(way):
    def case(folder):
        program = [RATION, "run", "--limit", "50%", "--group", "shared", "--", PROGRAMS / "holder", "3", str(100 * MIB), str(2 * GIB)]
        with Background(program, simulated(folder) | WAYS[way] | {"RATION_PREALLOCATE": "false"}):
            (process,) = json.loads(ration(folder, "ps", "--json"))["processes"]
            table = ration(folder, "ps")
            metrics = ration(folder, "ps", "--prometheus")
        expect("ps", (process["used_bytes"], process["limit"], process["refusals"], process["group"]), (300 * MIB, DEVICE // 2, 1, "shared"))
        expect_that(f"reserved {process['reserved_bytes']}", 300 * MIB <= process["reserved_bytes"] <= DEVICE // 2)
        expect_that(table, "holder" in table and "2.00GiB" in table and "300MiB" in table)
        held = {line.split("{")[0]: line.rsplit(" ", 1)[1] for line in metrics.splitlines() if line[0] != "#"}
        expect("metrics", held["ration_memory_limit_bytes"], str(DEVICE // 2))
    return case


def env(folder):
    # A sanitizer's runtime refuses the driver that the command loads late, unless it is told not to look.
    settings = {"RATION_LIMIT": "50%"} | ({"ASAN_OPTIONS": "verify_asan_link_order=0:intercept_tls_get_addr=0"} if SANITIZED else {})
    text = ration(folder, "env", **settings)
    shown = json.loads(ration(folder, "env", "--json", **settings))
    expect_that(text, "50%" in text)
    expect("devices", [(device["total_bytes"], device["limit"], device["backing"]) for device in shown["devices"]], [(DEVICE, DEVICE // 2, "vmm")])


cases = {"the device": the_device, "one memory": one_memory, "NVML": nvml("1", [NOT_SUPPORTED] * 3),
         "NVML, with processes": nvml("processes", [NOT_SUPPORTED, NOT_SUPPORTED, 0]), "ration env": env}
for each in WAYS:
    cases |= {f"the limit, {each}": limit_holds(each), f"queries, {each}": queries_show_it(each), f"pinned memory, {each}": pinned_lowers_free(each),
              f"the command, {each}": seen_by_the_command(each)}
for each in ("pool of granules", "pool of slabs"):
    cases[f"headroom, {each}"] = headroom(each)
main(cases | {
    "pinned beyond the headroom, pool of granules": pinned_beyond_headroom("pool of granules", "context=0 alloc=1m pinned=2g alloc=1m alloc=500m pinned=1g"),
    "pinned after a free, pool of granules": pinned_beyond_headroom("pool of granules", "context=0 alloc=3g free=0 pinned=3g"),
    "pinned after a free, pool of slabs": pinned_beyond_headroom("pool of slabs", "context=0 alloc=3g free=0 pinned=3g"),
    "pinned after a free, async": pinned_beyond_headroom("async", "context=0 alloc=3g free=0 pinned=3g"),
    "pinned after a free, direct": pinned_beyond_headroom("direct", "context=0 alloc=3g free=0 pinned=3g"),
})
