#!/usr/bin/env python3
"""Several copies of the driver in one process: one limit holds for all that their functions take."""
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "preload"))
from harness import driver_folder, expect, expect_that, main, run  # noqa: E402

LIMITED = (10, 2)  # blocks of 100 MiB within 1 GiB, then a refusal
NAMES = {"DRIVER": "libcuda.so.1", "COPY": "copied/libcuda.so.1", "RENAMED": "renamed/cuda-driver.so"}
WAYS = (
    "dlopen=DRIVER dlopen=COPY",
    "dlopen=COPY dlopen=DRIVER",
    "dlopen=COPY dlopen=RENAMED",
    "dlopen=DRIVER dlopen=COPY dlopen=RENAMED dlopen=DRIVER",
    "dlopen=DRIVER resolved=COPY",
    "resolved=COPY resolved=RENAMED",
    "base=DRIVER base=COPY",
    "namespace=DRIVER",
    "namespace=COPY dlopen=DRIVER",
    "dlopen=DRIVER namespace=COPY",
)


def filled(folder, way, **settings):
    words = []
    for word in way.split():
        how, name = word.split("=")
        path = NAMES[name]
        if "/" in path:
            path = pathlib.Path(folder) / path
            path.parent.mkdir(exist_ok=True)
            if not path.exists():
                shutil.copy(driver_folder("sim") / "libcuda.so.1", path)
        words.append(f"{how}={path}")
    done = run("copies", *words, SIMCUDA_DEVICES="4GiB", SIMCUDA_CONTEXT_BYTES="1MiB", **settings)
    expect(f"status; it said {done.out!r} {done.err!r}", (done.status, done.err), (0, ""))
    return tuple(map(int, re.search(r"blocks=(\d+) code=(\d+)", done.out).groups()))


def one_limit(way):
    def case(folder):
        plain = filled(folder, way, preload="")
        expect_that(f"more without Ration: {plain}", plain[0] > LIMITED[0])
        for mode in ("pool", "direct"):
            expect(f"mode {mode}", filled(folder, way, RATION_LIMIT="1GiB", RATION_MODE=mode, RATION_PREALLOCATE="false"), LIMITED)
        expect("without a limit it is as without Ration", filled(folder, way, RATION_DISABLE="1"), plain)
    return case


main({way: one_limit(way) for way in WAYS})
