#!/usr/bin/env python3
"""What a program prints to its closed standard streams reaches no file of Ration's (closed_streams.cc)."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "preload"))
from harness import expect, main, run  # noqa: E402

RUNS = 10


def closed(**settings):
    def case(folder):
        state = pathlib.Path(folder) / "state"
        for _ in range(RUNS):
            done = run("closed_streams", RATION_LIMIT="1GiB", RATION_STATE_DIR=state, RATION_MODE="pool", **settings)
            expect("status", done.status, 0)
        for path in state.iterdir():
            expect(f"{path.name} is untouched", b"printed" in path.read_bytes(), False)
        log = settings.get("RATION_LOG")
        if log:
            with open(log, encoding="utf-8") as lines:
                expect("lines of the program's", sum("printed" in line for line in lines), 0)
    return case


log = f"/tmp/ration-closed-streams-{os.getpid()}.jsonl"
try:
    main({"in no group": closed(), "in a group": closed(RATION_GROUP="closed", RATION_GROUP_LIMIT="2GiB"),
          "with a log": closed(RATION_LOG=log)})
finally:
    pathlib.Path(log).unlink(missing_ok=True)
