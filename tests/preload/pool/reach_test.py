#!/usr/bin/env python3
"""Work that runs on device 1 keeps a freed block of device 0 exactly if it may use that block (reach.cc)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from harness import GIB, expect, main, run  # noqa: E402

ASYNCHRONOUS = ("cuMemcpyAsync", "cuMemcpyPeerAsync", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
                "cuMemcpyDtoDAsync_v2", "cuMemcpy2DAsync_v2", "cuMemcpy3DAsync_v2", "graph")
RETURNS_AT_ONCE = ("cuMemcpy", "cuMemcpyDtoD_v2", "cuMemcpyPeer")
REACHING = ("peer_access", *ASYNCHRONOUS, *(f"{way}_ptsz" for way in ASYNCHRONOUS),
            *RETURNS_AT_ONCE, *(f"{way}_ptds" for way in RETURNS_AT_ONCE))
DEVICES = {"SIMCUDA_DEVICES": "2x8GiB", "RATION_LIMIT": str(4 * GIB), "RATION_MODE": "pool",
           "RATION_PREALLOCATE": "false"}


def one(way, reused, **settings):
    def case(_):
        done = run("reach", way, **DEVICES | settings)
        expect("status", done.status, 0)
        expect("answers", done.out.splitlines(),
               ["code: 0", f"free: 0, allocation: 0, reused: {int(reused)}", "end: 0"])
    return case


cases = {f"{way} on another device keeps no block": one(way, True) for way in ("nothing", "own_copy")}
cases |= {f"{way} keeps the block": one(way, False) for way in REACHING}
cases |= {"a free that waits does not wait for another device": one("nothing", True, RATION_FREE="synchronous")}
main(cases)
