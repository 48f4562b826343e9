#!/usr/bin/env python3
"""Python's multiprocessing: a handle is sent to a child by a queue, the child opens it and writes back. Under `spawn` and
`forkserver` the child has a driver of its own; under `fork` only if the parent has not initialised one."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from peers import BACKING  # noqa: E402
from harness import expect, main, run  # noqa: E402

PROGRAM = str(pathlib.Path(__file__).resolve().parent / "by_multiprocessing.py")


def start_method(method, **settings):
    def case(folder):
        (pathlib.Path(folder) / "machine").mkdir()
        done = run(PROGRAM, method, folder=folder, RATION_STATE_DIR=f"{folder}/state", RATION_MODE="pool",
                   RATION_BACKING=BACKING, RATION_LIMIT="256MiB",
                   SIMCUDA_MACHINE=f"{folder}/machine", SIMCUDA_DEVICES="1GiB", SIMCUDA_CONTEXT_BYTES="1MiB", **settings)
        expect(f"status; {done.err}", done.status, 0)
        expect("said", done.out.splitlines(), ["exchanged 20"])
    return case


main({
    "spawn": start_method("spawn"),
    "forkserver": start_method("forkserver"),
    "fork": start_method("fork"),
    "spawn, preallocated after the first allocation": start_method("spawn", RATION_PREALLOCATE_AFTER="0"),
})
