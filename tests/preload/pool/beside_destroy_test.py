#!/usr/bin/env python3
"""An allocation that waits while another thread destroys a busy context sleeps (beside_destroy.cc)."""

from harness import MIB, expect, main, run

SETTINGS = {"pool": {"RATION_PREALLOCATE": "false"}, "preallocated": {"RATION_PREALLOCATE_AFTER": "0"}, "async": {}}


def sleeps(name):
    def one(_):
        mode = "async" if name == "async" else "pool"
        done = run("beside_destroy", RATION_MODE=mode, RATION_LIMIT=64 * MIB, **SETTINGS[name])
        expect(f"what it did, having said {done.err[-300:]!r}", done.out.splitlines(),
               ["sleeps", "cuCtxDestroy: 0", "cuMemAlloc: 0"])
    return one


main({name: sleeps(name) for name in SETTINGS})
