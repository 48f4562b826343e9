#!/usr/bin/env python3
"""pool_replay replays a program's log: the same blocks, in the same order, with the same peak."""
import json
import lzma
import pathlib
import subprocess

from harness import BUILD, HANG, MIB, expect, expect_that, main, read_log, run

REPLAY = BUILD / "bin/pool_replay"


def replay(log, *options, placements=None):
    if placements:
        options += ("--placements", placements)
    done = subprocess.run([REPLAY, "--trace", log, "--json", *options], capture_output=True, text=True, timeout=HANG,
                          check=False)
    expect("status", (done.returncode, done.stderr), (0, ""))
    return json.loads(done.stdout)


def requested(record):
    return record["size"] if record["api"].startswith("cuMemAllocPitch") else record["req"]


def expected(records):
    """By (device, context): the operations of the replay, and its peak, recomputed from the log."""
    live, steps, held, peaks = {}, {}, {}, {}
    for record in records:
        if record["t"] == "alloc":
            pool = record["dev"], record["ctx"]
            live[record["addr"]] = pool, record["seq"], requested(record)
            steps.setdefault(pool, []).append(f"a {record['seq']} {requested(record)}")
            held[pool] = held.get(pool, 0) + requested(record)
            peaks[pool] = max(peaks.get(pool, 0), held[pool])
        elif record["t"] == "free":
            pool, seq, size = live.pop(record["addr"])
            steps[pool].append(f"f {seq}")
            held[pool] -= size
    return steps, peaks


def without_offsets(placements):
    lines = [line.split() for line in placements.read_text().splitlines()]
    return [f"a {line[1]} {line[3]}" if line[0] == "a" else " ".join(line) for line in lines]


def every_pool_of(log, folder):
    steps, peaks = expected(read_log(log))
    for (device, context), wanted in steps.items():
        placements = pathlib.Path(folder) / "placements"
        result = replay(log, "--device", str(device), "--context", str(context), placements=placements)
        expect("pool", (result["device"], result["context"], result["pools"], result["exact"]),
               (device, context, len(steps), True))
        expect("peak", result["peak_bytes"], peaks[device, context])
        expect("operations", without_offsets(placements), wanted)
        expect_that(f"{result}", result["fits"] and result["min_arena_bytes"] > result["peak_bytes"])
    expect("peak of the default", replay(log)["peak_bytes"], max(peaks.values()))
    return steps


def random_program(**settings):
    def case(folder):
        log = pathlib.Path(folder) / "run.jsonl"
        done = run("books", str(log), "4711", "400", str(96 * MIB), str(64 * MIB), folder=folder,
                   SIMCUDA_DEVICES="2x512MiB", SIMCUDA_CONTEXT_BYTES="0", RATION_LIMIT=f"0={96 * MIB},1={64 * MIB}",
                   RATION_HEADROOM="0", **settings)
        expect("status", done.status, 0)
        steps = every_pool_of(log, folder)
        expect_that(f"pools: {sorted(steps)}", {device for device, _ in steps} == {0, 1} and len(steps) > 2)
    return case


def compressed(folder):
    run("endings", "return", folder=folder, RATION_LIMIT="1GiB")
    log = pathlib.Path(folder) / "run.jsonl"
    packed = pathlib.Path(folder) / "run.jsonl.xz"
    packed.write_bytes(lzma.compress(log.read_bytes()))
    expect("peak", replay(packed)["peak_bytes"], replay(log)["peak_bytes"])


def two_processes(folder):
    """Both logs in one file: one pool for each process, although their addresses are equal."""
    run("processes", "fork_then_parent", folder=folder, RATION_LIMIT="1GiB")
    logs = sorted(pathlib.Path(folder).glob("run.jsonl*"))
    both = pathlib.Path(folder) / "both"
    both.write_text("".join(log.read_text() for log in logs))
    for log in logs:
        process = read_log(log)[0]["pid"]
        result = replay(both, "--process", str(process))
        expect("pool", (result["process"], result["pools"], result["exact"]), (process, 2, True))
        expect("peak", result["peak_bytes"], max(expected(read_log(log))[1].values()))


def killed(folder):
    """The blocks of a killed process are never freed; the log is exact up to its end."""
    run("endings", "kill", folder=folder, RATION_LIMIT="1GiB")
    every_pool_of(pathlib.Path(folder) / "run.jsonl", folder)


main({
    "a random program": random_program(RATION_PREALLOCATE="false"),
    "a random program, no pool": random_program(RATION_MODE="direct"),
    "a compressed log": compressed,
    "two processes in one file": two_processes,
    "a killed process": killed,
})
