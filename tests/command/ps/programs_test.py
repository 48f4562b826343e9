#!/usr/bin/env python3
"""`ration ps` with unmodified programs that share a GPU: its figures are what each program allocated."""
import json
import os
import pathlib
import subprocess
import sys
import time

from members import PROGRAMS, RATION, Background, environment, ration
from harness import GIB, HANG, LIBRARIES, MIB, driver_folder, expect, expect_that, main, of_type, read_log


def settings_of(folder):
    return environment(pathlib.Path(folder) / "state") | {
        "LD_LIBRARY_PATH": str(driver_folder("sim")), "SIMCUDA_MACHINE": str(pathlib.Path(folder) / "machine"),
        "SIMCUDA_DEVICES": "16GiB"}


def holder(folder, count, size, refused, *flags, **variables):
    """A holder under `ration run` with these flags, or without flags under the preloaded library."""
    (pathlib.Path(folder) / "machine").mkdir(exist_ok=True)
    program = [PROGRAMS / "holder", str(count), str(size), str(refused)]
    if flags:
        return Background([RATION, "run", *flags, "--", *program], settings_of(folder) | variables)
    return Background(program, settings_of(folder) | {"LD_PRELOAD": LIBRARIES} | variables)


def seen_in(folder):
    return json.loads(ration(pathlib.Path(folder) / "state", "ps", "--json").stdout)


def of_group(seen, name):
    return [process for process in seen["processes"] if process["group"] == name]


def figures(process):
    return {key: process[key] for key in ("reserved_bytes", "used_bytes", "limit", "allocs", "refusals", "refusals_by_reason")}


def reasons(**counts):
    return dict.fromkeys(("limit", "group", "device", "pool_holds", "fault"), 0) | counts


def shared(folder):
    """Two processes in a group, one refused by its limit and one by its own, and one process without a group."""
    group = ("--mode", "direct", "--group", "nightly", "--group-limit", "6GiB")
    with holder(folder, 4, GIB, 4 * GIB, *group), \
         holder(folder, 2, 512 * MIB, GIB, *group, "--limit", "1536MiB"), \
         holder(folder, 3, 100 * MIB, 16 * GIB, RATION_MODE="direct") as alone:
        seen = seen_in(folder)
    large, small = sorted(of_group(seen, "nightly"), key=lambda process: -process["reserved_bytes"])
    expect("large", figures(large), {"reserved_bytes": 4 * GIB, "used_bytes": 4 * GIB, "limit": None, "allocs": 4, "refusals": 1,
                                     "refusals_by_reason": reasons(group=1)})
    expect("small", figures(small), {"reserved_bytes": GIB, "used_bytes": GIB, "limit": 1536 * MIB, "allocs": 2, "refusals": 1,
                                     "refusals_by_reason": reasons(limit=1)})
    (ungrouped,) = of_group(seen, "-")
    expect("alone", (ungrouped["pid"], ungrouped["reserved_bytes"], ungrouped["refusals_by_reason"]),
           (alone.pid, 300 * MIB, reasons(device=1)))
    expect("one GPU", len({process["uuid"] for process in seen["processes"]}), 1)
    expect("group", {key: seen["groups"][0][key] for key in ("group", "limit", "reserved_bytes", "free_bytes", "process_count")},
           {"group": "nightly", "limit": 6 * GIB, "reserved_bytes": 5 * GIB, "free_bytes": GIB, "process_count": 2})
    expect("after the end", seen_in(folder)["processes"], [])


def beside_others(folder):
    """What is held outside Ration is shown for each device, with what NVML says of it: a process that Ration does not know, by its
    bytes and its context's."""
    sim = {"LD_LIBRARY_PATH": str(driver_folder("sim")), "SIMCUDA_MACHINE": f"{folder}/machine", "SIMCUDA_DEVICES": "16GiB,8GiB",
           "SIMCUDA_CONTEXT_BYTES": str(256 * MIB), "SIMCUDA_NVML_UTILISATION": "37", "SIMCUDA_NVML_TEMPERATURE": "54"}
    (pathlib.Path(folder) / "machine").mkdir()

    def ps(*arguments, verb="ps"):
        return subprocess.run([RATION, verb, *arguments], env=settings_of(folder) | sim, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=HANG, check=True).stdout

    with holder(folder, 2, GIB, 32 * GIB, RATION_MODE="direct", **sim) as mine, \
         Background([PROGRAMS / "holder", "3", str(GIB), str(32 * GIB)], settings_of(folder) | sim):
        seen, table = json.loads(ps("--json")), ps()
    keys = ("gpu_index", "name", "total_bytes", "reserved_bytes", "overhead_bytes", "others_bytes", "free_bytes", "utilisation_percent", "temperature_celsius")
    devices = [{key: device[key] for key in keys} for device in seen["devices"]]
    sensors = {"name": "simcuda GPU", "utilisation_percent": 37, "temperature_celsius": 54}
    expect("devices", devices, [
        {"gpu_index": 0, "total_bytes": 16 * GIB, "reserved_bytes": 2 * GIB, "overhead_bytes": 256 * MIB, "others_bytes": 3 * GIB + 256 * MIB, "free_bytes": 16 * GIB - 5 * GIB - 512 * MIB} | sensors,
        {"gpu_index": 1, "total_bytes": 8 * GIB, "reserved_bytes": 0, "overhead_bytes": 0, "others_bytes": 0, "free_bytes": 8 * GIB} | sensors])
    lines = [line.split() for line in table.splitlines()]
    expect("the process", lines[1][0], str(mine.pid))
    expect("rows of others", [line for line in lines if line and line[-1] == "others"],
           [["-", "-", "0", "3.25GiB", *["-"] * 6, "others"], ["-", "-", "1", "0B", *["-"] * 6, "others"]])
    marks = [device["uuid"][:len("GPU-") + 8] for device in seen["devices"]]
    expect("UUIDs in the table", [line[3] for line in lines[-2:]], marks)
    expect("devices in the table", lines[-3:], ["GPU NAME UUID SIZE RESERVED OVERHEAD OTHERS FREE UTIL TEMP".split(),
                                               f"0 simcuda GPU {marks[0]} 16.0GiB 2.00GiB 256MiB 3.25GiB 10.5GiB 37% 54C".split(),
                                               f"1 simcuda GPU {marks[1]} 8.00GiB 0B 0B 0B 8.00GiB 37% 54C".split()])


def named_in_a_summary(folder):
    """After a refusal by a full device `ration run` says how much is held there outside Ration; a limit of its own explains itself."""
    sim = {"SIMCUDA_DEVICES": "8GiB", "SIMCUDA_CONTEXT_BYTES": str(256 * MIB), "RATION_MODE": "direct"}
    (pathlib.Path(folder) / "machine").mkdir()

    def refused(*flags):
        return subprocess.run([RATION, "run", *flags, "--", PROGRAMS / "holder", "1", str(GIB), str(6 * GIB)], env=settings_of(folder) | sim,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG, check=True).stderr

    with Background([PROGRAMS / "holder", "3", str(GIB), str(32 * GIB)], settings_of(folder) | sim):
        full, text, limited = json.loads(refused("--json")), refused(), json.loads(refused("--json", "--limit", "2GiB"))
    outside = [[each for each in run["processes"][0]["devices"][0]["holders"] if each["program"] == "outside Ration"] for run in (full, limited)]
    expect("of a full device, and under a limit", outside,
           [[{"pid": None, "program": "outside Ration", "reserved_bytes": 3 * GIB + 256 * MIB, "guarantee": 0}], []])
    expect_that(f"the summary: {text}", "3.25GiB of the device are held outside Ration now" in text)


def guarantees(folder):
    """Two members with guarantees leave a third little, and it is told to whom the rest is guaranteed."""
    log = pathlib.Path(folder) / "third.jsonl"
    group = {"RATION_GROUP": "nightly", "RATION_GROUP_LIMIT": "6GiB", "RATION_MODE": "direct"}
    with holder(folder, 3, 512 * MIB, 16 * GIB, **group, RATION_GUARANTEE="2GiB") as first, \
         holder(folder, 1, 512 * MIB, 16 * GIB, **group, RATION_GUARANTEE="3GiB") as second, \
         holder(folder, 1, 512 * MIB, GIB, **group, RATION_LOG=str(log)) as third:
        seen, table = seen_in(folder), ration(pathlib.Path(folder) / "state", "ps").stdout
        metrics = ration(pathlib.Path(folder) / "state", "ps", "--prometheus").stdout
    rows = {process["pid"]: process for process in seen["processes"]}
    expect("processes", {pid: (row["reserved_bytes"], row["guarantee"], row["waiting_bytes"], row["groups"][0]["process_claimed_bytes"]) for pid, row in rows.items()},
           {first.pid: (1536 * MIB, 2 * GIB, 0, 2 * GIB), second.pid: (512 * MIB, 3 * GIB, 0, 3 * GIB),
            third.pid: (512 * MIB, 0, 0, 512 * MIB)})
    expect("group", {key: seen["groups"][0][key] for key in ("limit", "reserved_bytes", "claimed_bytes", "guaranteed_bytes", "waiting_processes", "free_bytes", "process_count")},
           {"limit": 6 * GIB, "reserved_bytes": 2560 * MIB, "claimed_bytes": 5632 * MIB, "guaranteed_bytes": 5 * GIB, "waiting_processes": 0, "free_bytes": 512 * MIB,
            "process_count": 3})
    expect("claims", sum(row["groups"][0]["process_claimed_bytes"] for row in rows.values()), seen["groups"][0]["claimed_bytes"])
    titles = [line.split() for line in table.splitlines() if line.endswith(("COMMAND", "PROCESSES"))]
    expect("titles", titles, ["PID USER GROUP GPU RESERVED USED LIMIT PEAKRES PEAKUSED GUARANTEE FAILS AGE COMMAND".split(),
                              "GROUP GPU LIMIT RESERVED GUARANTEED CLAIMED FREE PROCESSES".split()])
    expect_that(metrics, f'ration_group_claimed_bytes{{gpu="{seen["groups"][0]["uuid"]}",group="nightly"}} {5632 * MIB}\n' in metrics)
    oom, = of_type(read_log(log), "oom")
    expect("refusal", {key: oom[key] for key in ("reason", "group_limit", "group_reserved", "group_claimed")},
           {"reason": "group", "group_limit": 6 * GIB, "group_reserved": 2560 * MIB, "group_claimed": 5632 * MIB})
    expect("holders", [(one["pid"], one["reserved"], one.get("guarantee")) for one in oom["holders"]],
           [(second.pid, 512 * MIB, 3 * GIB), (first.pid, 1536 * MIB, 2 * GIB), (third.pid, 512 * MIB, None)])
    report = ration(pathlib.Path(folder) / "state", "report", str(log)).stdout
    expect_that(report, f"holder (pid {second.pid}) held 512MiB ({512 * MIB} bytes) and kept 2.50GiB" in report)


def a_tree_in_a_group(folder):
    """A process in several groups has one row."""
    with holder(folder, 1, GIB, 4 * GIB, "--mode", "direct", "--group", "nightly", "--group-tree=3GiB"):
        seen = seen_in(folder)
    (process,) = seen["processes"]
    kinds = {group["kind"]: group["limit"] for group in process["groups"]}
    expect("limits", kinds, {"named": None, "tree": 3 * GIB})
    expect_that(process["group"], process["group"].startswith("nightly,tree:") or process["group"].endswith(",nightly"))


def a_pool(folder):
    """The device holds more for a process with a pool than the program has allocated."""
    with holder(folder, 3, 100 * MIB, 5 * GIB, "--limit", "4GiB"):
        (process,) = seen_in(folder)["processes"]
    expect("limit", process["limit"], 4 * GIB)
    expect_that(f"reserved {process['reserved_bytes']}", 300 * MIB < process["reserved_bytes"] <= 4 * GIB)
    expect("used", process["used_bytes"], 300 * MIB)


def stitching(folder, backing, stitches):
    """A pool of granules says how many it holds, and which blocks are stitched; one of slabs has none. So does the log."""
    log = pathlib.Path(folder) / "run.jsonl"
    (pathlib.Path(folder) / "machine").mkdir()
    command = [RATION, "run", "--limit", "1GiB", "--log", log, "--", PROGRAMS / "stitcher"]
    with Background(command, settings_of(folder) | {"RATION_BACKING": backing}) as program:
        before, table = seen_in(folder), ration(pathlib.Path(folder) / "state", "ps").stdout
        metrics = ration(pathlib.Path(folder) / "state", "ps", "--prometheus").stdout
        program.stdin.write("free\n")
        program.stdin.flush()
        expect("the program", program.stdout.readline(), "freed\n")
        after = seen_in(folder)
        program.stdin.close()
        program.wait(HANG)
    (held,), (left,) = before["processes"], after["processes"]
    end = json.loads(log.read_text().splitlines()[-1])
    expect("titles", table.split("\n")[0].split()[6:],
           ["PEAKRES", "PEAKUSED", *(["PIECES", "JOINED"] if stitches else []), "FAILS", "AGE", "COMMAND"])
    expect_that(f"{held['granules']} granules", 0 < held["granules"] <= held["reserved_bytes"] // (2 * MIB) if stitches else held["granules"] == 0)
    expect("while the block lives", (held["stitched_blocks"], held["stitched_total"]), (stitches, stitches))
    expect_that(f"peaks: {left['peak_bytes']} of {left['reserved_peak_bytes']} bytes",
                left["used_bytes"] <= held["used_bytes"] <= left["peak_bytes"] <= left["reserved_peak_bytes"] and held["peak_bytes"] <= left["peak_bytes"])
    expect("once it is freed", (left["granules"], left["stitched_blocks"], left["stitched_total"]), (held["granules"], 0, stitches))
    series = dict((line.split("{")[0], line.rsplit(" ", 1)[1]) for line in metrics.splitlines() if line[0] != "#")
    expect("metrics", [series[f"ration_{name}"] for name in ("granules", "stitched_blocks", "stitched_total")],
           [str(held[name]) for name in ("granules", "stitched_blocks", "stitched_total")])
    expect("the end of the log", end["stitched"], [stitches])
    expect_that(f"the end of the log: {end['granules_peak']} granules", end["granules_peak"][0] >= held["granules"])


# Takes so many blocks of so many bytes, frees as many of them, and sleeps. In stream order, if asked to.
IDLE = """
import ctypes, sys
cuda, context, blocks = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), []
for result in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)): assert result == 0
for _ in range(int(sys.argv[1])):
    blocks.append(ctypes.c_uint64())
    take, *stream = (cuda.cuMemAllocAsync, None) if sys.argv[4] == "stream" else (cuda.cuMemAlloc_v2,)
    assert take(ctypes.byref(blocks[-1]), ctypes.c_size_t(int(sys.argv[2])), *stream) == 0
give, *stream = (cuda.cuMemFreeAsync, None) if sys.argv[4] == "stream" else (cuda.cuMemFree_v2,)
for block in blocks[:int(sys.argv[3])]: assert give(block, *stream) == 0
if sys.argv[4] == "stream": assert cuda.cuCtxSynchronize() == 0
print("ready", flush=True)
sys.stdin.read()
"""


def idler(folder, count, size, freed, way="plain", **variables):
    (pathlib.Path(folder) / "machine").mkdir(exist_ok=True)
    return Background([sys.executable, "-c", IDLE, str(count), str(size), str(freed), way],
                      settings_of(folder) | {"LD_PRELOAD": LIBRARIES} | variables)


def idle(folder, mode, count, size, freed, way):
    """What ps says of a program that makes no call any more, once that is exact, or at last."""
    with idler(folder, count, size, freed, way, RATION_MODE=mode):
        deadline = time.monotonic() + HANG
        while True:
            (row,) = seen_in(folder)["processes"]
            exact = row["used_bytes"] == (count - freed) * size and row["allocs"] == count
            if exact or mode == "direct" or way == "stream" or time.monotonic() > deadline:
                return row
            os.sched_yield()


def exact_in_the_end(folder):
    """Hits are not published at once, but within a second; what the driver serves is."""
    for mode, count, size, freed in (("pool", 12, 100 * MIB, 0), ("pool", 20, 100 * MIB, 20), ("pool", 40, 60 * MIB, 40),
                                     ("pool", 300, 32 * MIB, 1), ("async", 20, 100 * MIB, 3), ("direct", 3, MIB, 0), ("direct", 3, MIB, 2),
                                     ("direct", 40, 60 * MIB, 40), ("stream", 4, 1024, 0), ("stream", 4, GIB, 4), ("stream", 2, MIB, 1)):
        modes = ("pool", "direct", "async") if mode == "stream" else (mode,)
        for each in modes:
            row = idle(folder, each, count, size, freed, "stream" if mode == "stream" else "plain")
            name = f"{mode} in {each}: {count} blocks of {size}, {freed} freed"
            expect(name, (row["used_bytes"], row["peak_bytes"], row["allocs"]), ((count - freed) * size, count * size, count))
            expect_that(f"{name}: {row['used_bytes']} used of {row['reserved_bytes']} bytes", row["used_bytes"] <= row["reserved_bytes"])


# Launches a graph that allocates and frees, gives its memory back, and makes no call any more.
TRIMMED = """
import ctypes, struct, sys
cuda, context, graph, node, free, run = ctypes.CDLL("libcuda.so.1"), *(ctypes.c_void_p() for _ in range(5))
parameters = ctypes.create_string_buffer(struct.pack("4i2QH54sQ3Q", 1, 0, 1, 0, 0, 0, 0, bytes(54), 0, 0, int(sys.argv[1]), 0))
by = ctypes.byref
for result in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(by(context), 0), cuda.cuCtxSetCurrent(context), cuda.cuGraphCreate(by(graph), 0),
               cuda.cuGraphAddMemAllocNode(by(node), graph, None, ctypes.c_size_t(0), parameters)): assert result == 0, result
block = ctypes.c_uint64.from_buffer(parameters, 112)
for result in (cuda.cuGraphAddMemFreeNode(by(free), graph, by(node), ctypes.c_size_t(1), block),
               cuda.cuGraphInstantiateWithFlags(by(run), graph, ctypes.c_uint64(0)), cuda.cuGraphLaunch(run, None),
               cuda.cuCtxSynchronize(), cuda.cuDeviceGraphMemTrim(0)): assert result == 0, result
print("ready", flush=True)
sys.stdin.read()
"""


def in_turn(folder):
    """A group that begins after all members of one of its name have ended is another one in the summary of a run."""
    (pathlib.Path(folder) / "machine").mkdir()
    step = f"{PROGRAMS}/steps init context=0 alloc"
    subprocess.run([RATION, "run", "--group", "g", "--group-limit", "500MiB", "--summary", "summary", "--", "sh", "-c", f"{step}=300m; {step}=10m"],
                   env=settings_of(folder), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG, check=True)
    processes = json.loads((pathlib.Path(folder) / "summary").read_text())["processes"]
    expect("peaks", sorted(each["devices"][0]["groups"][0]["claimed_peak_bytes"] for each in processes), [10 * MIB, 300 * MIB])


def a_peak_does_not_fall(folder):
    (pathlib.Path(folder) / "machine").mkdir()
    for mode in ("pool", "direct", "async"):
        settings = settings_of(folder) | {"LD_PRELOAD": LIBRARIES, "RATION_MODE": mode}
        with Background([sys.executable, "-c", TRIMMED, str(256 * MIB)], settings):
            (row,) = seen_in(folder)["processes"]
            expect_that(f"{mode}: peak {row['reserved_peak_bytes']}, now {row['reserved_bytes']}", row["reserved_peak_bytes"] >= 256 * MIB > row["reserved_bytes"])


def stream_order_for_others(folder):
    """What a member has freed in stream order, and the driver has back, is another member's."""
    group = {"RATION_GROUP": "nightly", "RATION_GROUP_LIMIT": "5GiB"}
    for mode in ("pool", "direct", "async"):
        with idler(folder, 1, 4 * GIB, 1, "stream", RATION_MODE=mode, **group):
            with idler(folder, 1, 4 * GIB, 0, RATION_MODE=mode, **group):
                pass


# ThreadSanitizer cannot be loaded into an interpreter that was built without it.
of_python = {} if os.environ.get("PRELOAD_SANITIZE") == "thread" else {
    "exact in the end": exact_in_the_end, "a peak does not fall": a_peak_does_not_fall, "stream order for others": stream_order_for_others}
# No sanitizer can be loaded into a shell that was built without it.
of_shells = {} if os.environ.get("PRELOAD_SANITIZE") else {"in turn": in_turn}
main({**of_python, **of_shells, "shared": shared, "beside others": beside_others, "named in a summary": named_in_a_summary, "guarantees": guarantees, "a tree in a group": a_tree_in_a_group, "a pool": a_pool,
      "a pool of granules": lambda folder: stitching(folder, "vmm", 1), "a pool of slabs": lambda folder: stitching(folder, "slab", 0)})
