#!/usr/bin/env python3
"""NVML reports to a CUDA process the figures of cuMemGetInfo; its groups count before and after it joins them."""
import json
import pathlib
import sys

from watching import DEVICE, GIB, MACHINE, MIB, REAL, RESERVED, WAYS, answers, expect, expect_that, run, sizes, totals

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "group"))
from members import Machine, ended_clean  # noqa: E402
from harness import PROGRAMS, main, of_type  # noqa: E402

MODES = ({"RATION_MODE": "direct"}, {"RATION_MODE": "pool"}, {"RATION_MODE": "pool", "RATION_PREALLOCATE": "false"})


def like_cuda(folder):
    """After each step NVML's figures equal cuMemGetInfo's."""
    ops = "start init context=1 " + "".join(step + "index=1 memory " for step in
                                            ("", "alloc=3 ", "alloc=300 ", "alloc=1200 ", "free ", "alloc=900 "))
    for program in WAYS:
        for mode in MODES:
            for settings in ({}, {"RATION_LIMIT": "2GiB"}, {"RATION_LIMIT": "2GiB", "RATION_SHOW_LIMIT": "false"}):
                said = answers(program, ops, **mode, **settings)
                pairs = list(zip(said[::2], said[1::2]))
                expect("steps", len(pairs), 6)
                shown = "RATION_LIMIT" in settings and "RATION_SHOW_LIMIT" not in settings
                for nvml, cuda in pairs:
                    expect(f"{mode} {settings}: free", nvml["v1"][1], cuda["free"])
                    expect("total", nvml["v1"][0], cuda["total"] if shown else REAL)
                    expect("what the driver keeps", nvml["v2"][1], 0 if shown else RESERVED)


def others_stay(folder):
    """Devices without a limit, or without a context of the process."""
    said = answers("monitor", "start init context=0 alloc=100 index=0 index=1 index=2", RATION_LIMIT="0=1GiB,2=2GiB",
                   RATION_MODE="direct")
    expect("each device its own", sizes(said), [(GIB, GIB - 100 * MIB), (REAL, DEVICE), (2 * GIB, 2 * GIB)])


def nvml_first(folder):
    """NVML before CUDA, with one device of several: the limit is that device's before and after, and is enforced."""
    for program in WAYS:
        ops = "start index=0 index=1 init context=0 index=0 index=1 alloc=1000 index=1 memory"
        said = answers(program, ops, CUDA_VISIBLE_DEVICES="1", RATION_LIMIT="1GiB", RATION_MODE="direct")
        free = GIB - 1000 * MIB
        expect("NVML", sizes(said), [(REAL, DEVICE), (GIB, GIB)] * 2 + [(GIB, free)])
        expect("CUDA", (said[-1]["free"], said[-1]["total"]), (free, GIB))
        done = run(program, *f"{ops} alloc=25".split(), CUDA_VISIBLE_DEVICES="1", RATION_LIMIT="1GiB",
                   RATION_MODE="direct", **MACHINE)
        expect("over the limit", (done.status, done.err), (1, "alloc=25 failed\n"))


def chosen_late(folder):
    """A program that finds the device with most free memory through NVML, then makes only that one visible to CUDA."""
    said = answers("monitor", "start index=0 set=CUDA_VISIBLE_DEVICES:2 init context=0 index=0 index=2",
                   RATION_LIMIT="0=1GiB")
    expect("totals", totals(said), [GIB, REAL, GIB])


def lists(folder):
    """What NVML's lists have is no more than what it has as used, of this process what it uses, with and without neighbours."""
    ways = {"limit": {"RATION_LIMIT": "1GiB"}, "not shown": {"RATION_LIMIT": "1GiB", "RATION_SHOW_LIMIT": "false"},
            "none": {"RATION_PREALLOCATE": "2GiB"}, "group": {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB"}}
    for number, ((way, settings), mode) in enumerate((each, mode) for each in ways.items() for mode in ("direct", "pool", "async")):
        (apart := pathlib.Path(folder) / str(number)).mkdir()
        for neighbours in ((), (100, 6000)):
            (place := apart / str(len(neighbours))).mkdir()
            with Machine(place, devices="8GiB", RATION_MODE=mode, **settings) as machine:
                machine.simulated |= {"SIMCUDA_CONTEXT_BYTES": str(384 * MIB), "SIMCUDA_NVML_RESERVED": str(RESERVED), "SIMCUDA_NVML_LISTS": "all"}
                for size in neighbours:
                    machine.watcher().do(f"alloc={size}m")
                for program in WAYS:
                    ops = "start init context=0 index=0 lists=0 alloc=100 index=0 lists=0 alloc=200 index=0 lists=0 free index=0 lists=0"
                    watching = machine.launch([PROGRAMS / program, *ops.split()], machine.environment())
                    lines = [json.loads(line) for line in watching.process.stdout]
                    watching.ends()
                    expect(f"{way} {mode} {neighbours} {program}: answers", len(lines), 8)
                    for memory, seen in zip(lines[::2], lines[1::2]):
                        fits(f"{way} {mode} {neighbours} {program}", memory, seen, len(neighbours), alone=not neighbours and way != "not shown")


def fits(what, memory, seen, neighbours, alone):
    total, _, used = memory["v1"]
    (first, *others) = [dict(rows) for rows in seen["lists"]]
    expect(f"{what}: all lists", [other == first for other in others], [True] * 11)
    expect(f"{what}: rows", len(first), neighbours + 1)
    expect_that(f"{what}: {first} of {memory}", sum(first.values()) <= memory["v2"][3] <= used <= total)
    if alone:
        expect(f"{what}: what it uses", first[seen["pid"]], memory["v2"][3])
    code, most = seen["account"]
    expect_that(f"{what}: account {most}", code == 0 and most <= total)


def lists_stand(folder):
    """Of a device without a limit of a process that does not use it, and of a process that is disabled."""
    with Machine(folder, devices="8GiB", RATION_MODE="direct") as machine:
        neighbour = machine.watcher()
        neighbour.do("alloc=700m")
        rows = [[neighbour.pid, 701 * MIB]]
        for settings in ({}, {"RATION_LIMIT": "1GiB", "RATION_DISABLE": "1"}):
            expect("NVML's own", listed(machine, **settings), rows)
        expect("before CUDA, beside a limit that it does not touch", listed(machine, RATION_LIMIT="1GiB"), [[neighbour.pid, 0]])
        expect("before CUDA, of what it takes", listed(machine, RATION_LIMIT="7680MiB"), [[neighbour.pid, 189 * MIB]])


def listed(machine, **settings):
    watching = machine.launch([PROGRAMS / "monitor", "start", "lists=0"], machine.environment(**settings))
    lists_seen = json.loads(watching.process.stdout.read())["lists"]
    watching.ends()
    return lists_seen[0]


def logged(folder):
    """Calls to NVML are not logged, and the log begins with CUDA as usual."""
    done = run("monitor", *"start index=0 init context=0 alloc=100 index=0 free".split(), folder=folder,
               RATION_LIMIT="1GiB", RATION_MODE="direct", **MACHINE)
    expect(f"status: {done.err}", done.status, 0)
    records = done.logs["run.jsonl"]
    expect("records", [record["t"] for record in records], ["meta", "alloc", "free", "end"])
    expect("api", [record["api"] for record in of_type(records, "alloc")], ["cuMemAlloc_v2"])


def asked(machine, ops, **settings):
    """(total, free) from a separate process."""
    watching = machine.launch([PROGRAMS / "monitor", *ops.split()], machine.environment(**settings))
    lines = watching.process.stdout.read().splitlines()
    watching.ends()
    return sizes([json.loads(line) for line in lines])


def groups(folder):
    """The free memory is what the group has left, for a member and for a monitor."""
    with Machine(folder, devices="2x8GiB", RATION_MODE="direct", RATION_GROUP="g") as machine:
        only_watching = "start index=0 index=1"
        limit = {"RATION_GROUP_LIMIT": "0=2GiB"}
        expect("without members", asked(machine, only_watching, **limit), [(2 * GIB, 2 * GIB), (DEVICE, DEVICE)])
        holder = machine.member(**limit)
        holder.do("alloc=600m")
        left = 2 * GIB - 600 * MIB
        expect("one holds memory, and stated the limit", asked(machine, only_watching), [(2 * GIB, left), (DEVICE, DEVICE)])
        expect("a narrower limit of its own", asked(machine, only_watching, RATION_LIMIT="1GiB"), [(GIB, GIB)] * 2)
        expect("a member", asked(machine, "start init context=0 alloc=100 index=0"), [(2 * GIB, left - 100 * MIB)])
        expect("another group", asked(machine, only_watching, RATION_GROUP="h")[0][0], DEVICE)
        holder.kill()
        expect("after a member died", asked(machine, only_watching, **limit)[0], (2 * GIB, 2 * GIB))
        ended_clean(machine)


def trees(folder):
    with Machine(folder, devices="8GiB") as machine:
        tree = machine.ration_run("--group-tree=3GiB", "--mode", "direct")
        tree.do("init context=0 alloc=1g")
        tree.send(f"exec={PROGRAMS / 'monitor'} start index=0")
        said = json.loads(tree.read())
        expect("in a tree whose holder became the monitor", said["v1"][:2], [3 * GIB, 3 * GIB])
        ended_clean(machine)


def guaranteed(folder):
    """What is guaranteed to a run is free for its processes, though others have taken the rest; for those it is not."""
    with Machine(folder, devices="8GiB", RATION_MODE="direct") as machine:
        group = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "3GiB"}
        job = machine.ration_run("--group", "g", "--group-limit", "3GiB", "--guarantee", "1GiB")
        job.do("init")
        machine.member(**group).do("alloc=1900m")
        expect("outside", asked(machine, "start index=0", **group), [(3 * GIB, 148 * MIB)])
        job.send(f"exec={PROGRAMS / 'monitor'} start index=0")
        expect("in the run", json.loads(job.read())["v1"][:2], [3 * GIB, GIB + 148 * MIB])
        ended_clean(machine)


def containers(folder):
    """HAMi's limit, of all processes of the container, is what a monitor shows, and what they have left of it."""
    with Machine(folder, devices="8GiB", RATION_MODE="direct", CUDA_DEVICE_MEMORY_LIMIT="3g") as machine:
        machine.member().do("alloc=1024m")
        expect("in the container", asked(machine, "start index=0"), [(3 * GIB, 2 * GIB)])
        expect("with another limit", asked(machine, "start index=0", CUDA_DEVICE_MEMORY_LIMIT="2g"), [(2 * GIB, 2 * GIB)])
        ended_clean(machine)


main({"as cuMemGetInfo": like_cuda, "each device its own": others_stay, "NVML before CUDA": nvml_first,
      "a device chosen late": chosen_late, "the log": logged, "groups": groups, "lists of processes": lists, "lists that stand": lists_stand,
      "trees": trees, "guaranteed": guaranteed, "containers": containers})
