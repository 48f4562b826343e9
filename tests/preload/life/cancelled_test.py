#!/usr/bin/env python3
"""A thread that is cancelled inside a call of the driver ends, and nothing else does (cancelled.cc)."""


from harness import expect, main, run

ROUNDS = 200


def cancelled(mode, **settings):
    def case(folder):
        done = run("cancelled", str(ROUNDS), folder=folder, RATION_MODE=mode, RATION_LIMIT="64MiB", **settings)
        expect(f"status, having said {done.err!r}", done.status, 0)
        expect("cancelled threads", done.out, f"cancelled: {2 * ROUNDS}\n")
        frees = sum(record["t"] == "free" for record in done.logs["run.jsonl"])
        expect("every allocation has its free", sum(record["t"] == "alloc" for record in done.logs["run.jsonl"]), frees)
    return case


# Blocks of a small pool are large ones, whose frees ask the driver.
main({f"with a log, mode {mode}": cancelled(mode) for mode in ("pool", "direct", "async")}
     | {"with a log, preallocated": cancelled("pool", RATION_PREALLOCATE_AFTER="0")})
