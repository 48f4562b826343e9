#!/usr/bin/env python3
"""nvidia-ml-py on the simulated machine, without Ration and under it: nvml_test.py SOURCE_DIR BUILD_DIR

Exit status 77 (skipped) only if no package index answers.
"""
import json
import os
import pathlib
import subprocess
import sys

from client import expect, interpreter

GIB = 1 << 30
DEVICE = 8 * GIB


def memory_of(command, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("RATION_", "SIMCUDA_", "CUDA_"))}
    done = subprocess.run(command, env=clean | environment, stdout=subprocess.PIPE, text=True, check=False)
    expect(f"exit status of {command[0]}", done.returncode, 0)
    return [json.loads(line) for line in done.stdout.splitlines()]


def free_device(total):
    return [[total, total, 0], [total, 0, total, 0]]


def main():
    source, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    client = [interpreter(source, build), pathlib.Path(__file__).parent / "nvml_client.py"]
    plain = memory_of(client, LD_LIBRARY_PATH=str(build / "lib/ration/sim"), SIMCUDA_DEVICES="2x8GiB")
    expect("without Ration", plain, [free_device(DEVICE)] * 2)
    run = [build / "bin/ration", "run", "--sim", "2x8GiB"]
    expect("a limit on one device", memory_of([*run, "--limit", "1=2GiB", "--", *client]),
           [free_device(DEVICE), free_device(2 * GIB)])
    expect("a limit on the second as the first", memory_of([*run, "--limit", "0=25%", "--", *client], CUDA_VISIBLE_DEVICES="1"),
           [free_device(DEVICE), free_device(2 * GIB)])


main()
