#!/usr/bin/env python3
"""After the first call nothing reads the environment again (read_once.cc), in any mode, with and without a log and a group."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import expect, main, run  # noqa: E402

MACHINE = {"SIMCUDA_DEVICES": "4GiB", "RATION_LIMIT": "1GiB", "RATION_PREALLOCATE": "false"}


def read_once(logged, **settings):
    def case(folder):
        done = run("read_once", folder=folder if logged else None, RATION_STATE_DIR=f"{folder}/state", **MACHINE, **settings)
        expect(f"said {done.err!r}", (done.status, done.out), (0, "done\n"))
    return case


main({f"mode {mode}{', logged' if logged else ''}{', in a group' if group else ''}": read_once(logged, RATION_MODE=mode, **group)
      for mode in ("pool", "direct", "async") for logged in (False, True)
      for group in ({}, {"RATION_GROUP": "team", "RATION_GROUP_LIMIT": "2GiB"})})
