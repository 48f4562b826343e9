#!/usr/bin/env python3
"""Physical memory of another process (programs/imported.cc): its exporter is charged until that releases it, its importer
never, in whatever order they let go of it."""
import itertools

from harness import MIB, expect, main, run

LIMIT, BLOCK = 512, 100
STEPS = ("importer_unmaps", "importer_releases", "exporter_releases")


def imported(mode, steps):
    def case(folder):
        done = run("imported", *steps, RATION_LIMIT=LIMIT * MIB, RATION_MODE=mode, SIMCUDA_MACHINE=folder,
                   SIMCUDA_DEVICES="4GiB")
        expect("status, stderr", (done.status, done.err), (0, ""))
        lines, held = [f"imported {LIMIT - BLOCK} {LIMIT}", "read 1"], BLOCK
        for step in steps:
            held = 0 if step == "exporter_releases" else held
            lines.append(f"{step}=0 {LIMIT - held} {LIMIT}")
        expect("lines", done.out.splitlines(), lines)
    return case


main({f"{', '.join(steps)}, {mode}": imported(mode, steps) for mode in ("direct", "pool")
      for steps in itertools.permutations(STEPS)})
