#!/usr/bin/env python3
"""Records of stream-ordered calls have the stream that the call means."""
from harness import MIB, expect, main, of_type, run


def records(folder, **more):
    done = run("streamed", folder=folder, SIMCUDA_DEVICES="2GiB", **more)
    expect(f"status, {done.err!r}", done.status, 0)
    first, second = map(int, done.out.split())
    return done.logs["run.jsonl"], first, second


def in_records(mode):
    def case(folder):
        log, first, second = records(folder, RATION_MODE=mode)
        expect("of allocations", [(record["req"] // MIB, record["stream"]) for record in of_type(log, "alloc")],
               [(1, first), (2, second), (3, second), (4, 1), (5, 2), (6, 0)])
        expect("of frees", [record["stream"] for record in of_type(log, "free")], [second, 1, 2])
    return case


main({"in records, pool": in_records("pool"), "in records, async": in_records("async"), "in records, direct": in_records("direct")})
