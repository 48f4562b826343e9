#!/usr/bin/env python3
"""What Ration waits for before it reuses a freed block: every context, whoever made it and also if no memory was allocated
in it, but not for what the program has synchronised itself."""
import pathlib

from harness import expect, main, run

# Before cuCtxRecordEvent only a synchronise of each context shows what is clean: the trace has them.
OLDER = {"sim": "older", "SIMCUDA_MISSING": "cuCtxRecordEvent"}
SETTINGS = {"RATION_MODE": "pool", "RATION_LIMIT": "16MiB", "RATION_PREALLOCATE_AFTER": "0", "RATION_HEADROOM": "0"}
NEEDS_THE_FREED = ("alloc=10m", "free=0", "alloc=10m")


def synchronised(wanted, *ops):
    """How often a context is synchronised."""
    def case(folder):
        trace = pathlib.Path(folder) / "trace"
        done = run("steps", "init", *ops, SIMCUDA_TRACE=trace, SIMCUDA_DEVICES="2x1GiB", **OLDER, **SETTINGS)
        expect(f"codes, stderr {done.err!r}", [line.rsplit(": ", 1)[1] for line in done.out.splitlines()],
               ["0"] * (1 + len(ops)))
        calls = [line for line in trace.read_text().splitlines() if line.startswith("cuCtxSynchronize")]
        expect(f"synchronises {calls}", len(calls), wanted)
    return case


def waited_for(make):
    """A context in which nothing is ever allocated may still use another context's block."""
    return synchronised(2, "context=0", make, "current=0", *NEEDS_THE_FREED)


def spared(call):
    return synchronised(1, "context=0", "alloc=2m", "free=0", call, "alloc=16m")


main({"one context": synchronised(1, "context=0", *NEEDS_THE_FREED)}
     | {f"another one by {make}": waited_for(make) for make in ("context=0", "context_v1=0", "context_v3=0", "context_v4=0",
                                                                "retain=0")}
     | {"not one of another device": synchronised(1, "context=0", "context=1", "current=0", *NEEDS_THE_FREED)}
     | {f"not again after {call}": spared(call) for call in ("synchronize", "synchronize_v2=0")})
