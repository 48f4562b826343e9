#!/usr/bin/env python3
"""The samples through the runtime API (runtime.cc), with the small runtime linked statically and as a library."""

from harness import expect, main, run


def runtime(program, mode):
    def case(folder):
        done = run(program, folder=folder, SIMCUDA_DEVICES="4GiB", RATION_LIMIT="1GiB", RATION_MODE=mode)
        expect("status, lines", (done.status, done.out.count("\n"), done.err), (0, 1, ""))
        end = done.logs["run.jsonl"][-1]
        expect("refused", (end["t"], end["ooms"], [device["bytes"] for device in end["live"]]), ("end", 3, [0]))
    return case


main({f"sizes and refusals by the runtime, {name}, {mode}": runtime(f"failures_runtime_{name}", mode)
      for name in ("static", "shared") for mode in ("direct", "pool")})
