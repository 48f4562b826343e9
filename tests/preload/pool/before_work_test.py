#!/usr/bin/env python3
"""What was freed gets its fence before work is submitted, however that is done (before_work.cc)."""

from harness import expect, main, run

WAYS = ("cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuLaunchHostFunc", "cuLaunchHostFunc_v2",
        "cuStreamAddCallback",
        "cuStreamWaitValue32_v2", "cuStreamWaitValue64_v2", "cuStreamBatchMemOp_v2", "cuMemsetD8Async")
MODES = {"pool": {}, "pool with a log": {"RATION_LOG": "/dev/null"}}


def fenced(way, fences, **settings):
    def case(_):
        done = run("before_work", way, RATION_MODE="pool", RATION_LIMIT="8GiB", SIMCUDA_DEVICES="16GiB", **settings)
        expect("status", done.status, 0)
        expect("answers", done.out.splitlines(), ["blocks: 0 0 0", f"fences: {fences}, then 0"])
    return case


cases = {f"{way}{stream}, {mode}": fenced(way + stream, 1, **settings)
         for way in WAYS for stream in ("", "_ptsz") for mode, settings in MODES.items()}
cases |= {f"a call that submits no work, {mode}": fenced("cuMemGetInfo", 0, **settings) for mode, settings in MODES.items()}
main(cases)
