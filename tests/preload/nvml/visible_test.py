#!/usr/bin/env python3
"""For every value of CUDA_VISIBLE_DEVICES, NVML shows a limit by ordinal on the device that has this ordinal in CUDA, both
before and after CUDA is initialised."""
import itertools
import pathlib

from watching import GIB, REAL, answers, expect, totals
from harness import main

LIMITS = [1 * GIB, 2 * GIB, 3 * GIB]
LIMIT = ",".join(f"{ordinal}={bytes_}" for ordinal, bytes_ in enumerate(LIMITS))
ASK = "index=0 index=1 index=2"


def shown(visible):
    """Totals by device if CUDA sees the devices `visible` in that order."""
    return [LIMITS[visible.index(device)] if device in visible else REAL for device in range(3)]


def check(folder, written, visible):
    machine = pathlib.Path(folder) / "machine"
    machine.mkdir(exist_ok=True)
    settings = {"SIMCUDA_MACHINE": machine, "RATION_LIMIT": LIMIT}
    if written is not None:
        settings["CUDA_VISIBLE_DEVICES"] = written
    expect(f"{written!r} before CUDA", totals(answers("monitor", f"start {ASK}", **settings)), shown(visible))
    if visible:
        expect(f"{written!r} with CUDA", totals(answers("monitor", f"start {ASK} init {ASK}", **settings)), shown(visible) * 2)


def uuids(folder):
    machine = pathlib.Path(folder) / "machine"
    machine.mkdir()
    return [answer["uuid"] for answer in answers("monitor", "start name=0 name=1 name=2", SIMCUDA_MACHINE=machine)]


def permutations(folder):
    check(folder, None, [0, 1, 2])
    check(folder, "", [])
    for count in (1, 2, 3):
        for chosen in itertools.permutations(range(3), count):
            check(folder, ",".join(map(str, chosen)), list(chosen))


def by_uuid(folder):
    names = uuids(folder)
    check(folder, f"{names[2]},{names[0]}", [2, 0])
    check(folder, names[1], [1])
    shortest = next(n for n in range(5, 40) if len({name[:n] for name in names}) == 3)
    check(folder, f"{names[1][:shortest]},2,{names[0][:shortest]}", [1, 2, 0])
    check(folder, f"0,GPU-,{names[1]}", [0])  # valid on every device


def wrong_entries(folder):
    check(folder, "2,7,0", [2])
    check(folder, "-1", [])
    check(folder, "1,-1,0", [1])
    check(folder, "1,1,0", [1])
    check(folder, "1,,0", [1])
    check(folder, " 2 , 1", [2, 1])
    check(folder, "0,MIG-GPU-00000000-0000-0000-0000-000000000000/1/0,1", [0])
    check(folder, "NoDevFiles", [])


main({"every choice and order": permutations, "by UUID and its beginning": by_uuid, "entries that name nothing": wrong_entries})
