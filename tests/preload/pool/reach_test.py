#!/usr/bin/env python3
"""Work that runs on device 1 keeps a freed block of device 0 exactly if it may use that block (reach.cc): not once the
call that used it has ended."""

from harness import GIB, expect, main, run

MEMSETS = tuple(f"cuMemset{width}" for width in ("D8", "D16", "D32", "D2D8", "D2D16", "D2D32"))
QUEUED = ("cuMemcpyAsync", "cuMemcpyPeerAsync", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2",
          "cuMemcpy2DAsync_v2", "cuMemcpy3DAsync_v2", "cuGraphLaunch", *(f"{memset}Async" for memset in MEMSETS))
AT_ONCE = ("cuMemcpy", "cuMemcpyPeer", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2", "cuMemcpyDtoD_v2", "cuMemcpyDtoA_v2",
           "cuMemcpyAtoD_v2", "cuMemcpy2D_v2", "cuMemcpy2DUnaligned_v2", "cuMemcpy3D_v2",
           *(f"{memset}_v2" for memset in MEMSETS))
# The simulated driver has no such function.
UNSERVED = ("cuMemcpyBatchAsync", "cuMemcpyBatchAsync_v2", "cuMemcpy3DBatchAsync", "cuMemcpy3DBatchAsync_v2",
            "cuMemBatchDecompressAsync", "cuMemcpy3DPeerAsync", "cuMemcpyWithAttributesAsync", "cuMemcpy3DWithAttributesAsync",
            "cuFabricCpyBatchAsync")
REACHING = ("peer_access", *QUEUED, *(f"{way}_ptsz" for way in QUEUED), *AT_ONCE, *(f"{way}_ptds" for way in AT_ONCE))
NOT_SERVED = (*UNSERVED, *(f"{way}_ptsz" for way in UNSERVED), "cuMemcpy3DPeer", "cuMemcpy3DPeer_ptds")
DEVICES = {"SIMCUDA_DEVICES": "2x8GiB", "RATION_LIMIT": str(4 * GIB), "RATION_MODE": "pool",
           "RATION_PREALLOCATE": "false"}


def one(way, reused, served="served", then=True, how=(), **settings):
    def case(_):
        done = run("reach", way, *how, **DEVICES | settings)
        expect("status", done.status, 0)
        expect("answers", done.out.splitlines(),
               [served, *(f"free: 0, allocation: 0, reused: {int(each)}" for each in (reused, then)), "end: 0"])
    return case


cases = {f"{way} on another device keeps no block": one(way, True) for way in ("nothing", "own_copy")}
cases |= {f"{way} keeps the block": one(way, False, then=way != "peer_access") for way in REACHING}
cases |= {f"{way} keeps the block": one(way, False, "not supported") for way in NOT_SERVED}
cases |= {f"{way} that has ended keeps no block": one(way, True, how=("ended",)) for way in REACHING if way != "peer_access"}
cases |= {f"{way} in mode async": one(way, way == "own_copy", then=way != "peer_access", RATION_MODE="async")
          for way in ("own_copy", "peer_access", "cuMemcpyAsync", "cuMemcpyDtoHAsync_v2")}
cases |= {"a free that waits does not wait for another device": one("nothing", True, RATION_FREE="synchronous")}
main(cases)
