#!/usr/bin/env python3
"""examples/python_numba on the simulated driver, without Ration and under it: numba_test.py SOURCE_DIR BUILD_DIR

Checks the program's output, that the log agrees with it, and the example's README. Exit status 77 (skipped) only if no package index answers. The
expected values follow from the sizes: 100 MiB arrays, 8 GiB device, a limit of a quarter of it.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from client import expect, interpreter

GIB = 1 << 30
BLOCK = 100 << 20
GRANULE = 512  # a pool never allocates the first one of its slab
PHYSICAL = 8 * GIB
LIMIT = PHYSICAL // 4


def run(command, **environment):
    """The values that the program prints, by name."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("RATION_", "SIMCUDA_"))}
    done = subprocess.run(command, env=clean | environment, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, flush=True)
    expect(f"exit status of {command[0]}", done.returncode, 0)
    expect("last line", done.stdout.splitlines()[-1], "ok")
    return dict(re.findall(r"^([^:\n]+): (.*)$", done.stdout, re.MULTILINE))


def check_program(seen, total):
    """`free` at the start determines exactly how many arrays fit."""
    expect("total", int(seen["total"]), total)
    fit = int(seen["free"]) // BLOCK
    expect("blocks", seen["blocks"], f"{fit} of {BLOCK} bytes")
    expect("refusal", "CUDA_ERROR_OUT_OF_MEMORY" in seen["then"], True)
    lost = int(seen["free"]) - fit * BLOCK - int(seen["free when full"])
    expect(f"free when full: {lost} bytes too few", 0 <= lost <= GRANULE, True)
    expect("copies", seen["copied there and back"], f"{2 * fit} parts, 0 wrong")
    expect("after a free", int(seen["blocks after one was freed"]), fit)
    return fit


def check_log(path, fit):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    expect("first record", (records[0]["t"], records[0]["schema"]), ("meta", "ration.events/1"))
    expect("last record", records[-1]["t"], "end")
    expect("seq", [record["seq"] for record in records[1:]], list(range(records[1]["seq"], records[1]["seq"] + len(records) - 1)))
    live, peak = {}, 0
    for record in records:
        if record["t"] == "alloc":
            live[record["addr"]] = record["size"]
            peak = max(peak, sum(live.values()))
            expect("within the limit", sum(live.values()) <= LIMIT, True)
        elif record["t"] == "free":
            live.pop(record["addr"])
    expect("peak of the log", peak, fit * BLOCK)
    refused = [record for record in records if record["t"] == "oom"]
    expect("refusals", bool(refused), True)
    for record in refused:
        expect("refusal", (record["req"], record["reason"]), (BLOCK, "limit"))


def main():
    source, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    python = interpreter(source, build)
    program = source / "examples/python_numba/program.py"
    with tempfile.TemporaryDirectory() as folder:
        plain = run([python, program], LD_LIBRARY_PATH=str(build / "lib/ration/sim"), SIMCUDA_DEVICES="8GiB")
        check_program(plain, PHYSICAL)
        log = pathlib.Path(folder) / "run.jsonl"
        limited = run([build / "bin/ration", "run", "--sim", "8GiB", "--limit", "25%", "--log", log, "--", python, program])
        expect("blocks under the limit", check_program(limited, LIMIT), LIMIT // BLOCK)
        check_log(log, LIMIT // BLOCK)
    readme = [source / "examples/run_readme.py", source / "examples/python_numba", build]
    expect("commands of its README", subprocess.run([sys.executable, *readme], check=False).returncode, 0)


main()
