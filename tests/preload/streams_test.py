#!/usr/bin/env python3
"""Records of stream-ordered calls have the stream that the call means, and `report --by stream` groups by it."""
import json
import subprocess

from harness import BUILD, HANG, MIB, expect, main, of_type, run


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


def in_a_report(folder):
    _, first, second = records(folder)
    done = subprocess.run([BUILD / "bin/ration", "report", folder + "/run.jsonl", "--by", "stream", "--json"], capture_output=True,
                          text=True, timeout=HANG, check=False)
    expect(f"status, {done.stderr!r}", done.returncode, 0)
    expect("leaks", sorted((leak["group"], leak["bytes"] // MIB) for leak in json.loads(done.stdout)["leaks"]),
           sorted([("no stream", 6), (f"stream 0x{second:x}", 5)]))
    done = subprocess.run([BUILD / "bin/ration", "report", folder + "/run.jsonl", "--by", "stream"], capture_output=True, text=True,
                          timeout=HANG, check=False)
    for name in (f"stream 0x{first:x}", f"stream 0x{second:x}", "the legacy default stream", "the per-thread default stream", "no stream"):
        expect(f"{name} in {done.stdout}", name in done.stdout, True)


main({"in records, pool": in_records("pool"), "in records, async": in_records("async"), "in records, direct": in_records("direct"),
      "in a report": in_a_report})
