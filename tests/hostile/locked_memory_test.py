#!/usr/bin/env python3
"""Programs whose memory is locked as they take it, of which they may lock little (confining.cc)."""
import os
import pathlib
import resource
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "preload"), str(TESTS / "preload/group")]
from harness import MIB, PROGRAMS, expect, main  # noqa: E402
from members import REFUSED, Machine  # noqa: E402

MOST = 8 * MIB
GROUP = {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1MiB", "RATION_MODE": "direct"}
# Root may lock everything, but for this capability.
OBEYING = ["setpriv", "--bounding-set=-ipc_lock"] if os.geteuid() == 0 else []


def locking(folder):
    hardest = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    if hardest != resource.RLIM_INFINITY and hardest < MOST:
        print(f"skipped: not even {MOST} bytes may be locked here")
        return
    # The simulated driver maps its whole device, as a real one does.
    with Machine(folder, devices="2MiB", SIMCUDA_CONTEXT_BYTES="0", **GROUP) as machine:
        first, second = (machine.launch([*OBEYING, PROGRAMS / "confining"], machine.environment()) for _ in range(2))
        for member in (first, second):
            member.do(f"lock_memory={MOST} start")
        first.do(f"alloc={MIB // 2}")
        expect("what the first member leaves is not enough", second(f"alloc={MIB // 2 + 1}"), REFUSED)
        second.do(f"alloc={MIB // 2}")
        expect("the group is full", first("alloc=1"), REFUSED)
        second.kill()
        first.do(f"alloc={MIB // 2}")
        expect("standard error", first.err(), "")


main({f"a program that locks all that it maps joins a group with {MOST >> 20} MiB": locking})
