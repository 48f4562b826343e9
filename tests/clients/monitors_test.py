#!/usr/bin/env python3
"""nvidia-ml-py, gpustat and nvitop beside a process that holds memory: natively, and under a limit in every mode, where
that process has no part of what is used of the limit."""
import contextlib
import json
import pathlib
import re

from clients import MODES, limited, python, run, start
from harness import GIB, HANG, MIB, expect, expect_that, main

PYTHON = python()
HERE = pathlib.Path(__file__).resolve().parent
DEVICES, HELD = "2x8GiB", 100 * MIB
PROCESSES = """
import pynvml
pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
print(pynvml.nvmlSystemGetCudaDriverVersion(), pynvml.nvmlDeviceGetMemoryInfo(device).total)
print([(one.pid, one.usedGpuMemory) for one in pynvml.nvmlDeviceGetComputeRunningProcesses(device)])
print(pynvml.nvmlDeviceGetGraphicsRunningProcesses(device))
try:
    pynvml.nvmlDeviceGetTemperature(device, pynvml.NVML_TEMPERATURE_GPU)
except pynvml.NVMLError as refused:
    print(refused)
"""


@contextlib.contextmanager
def holder(folder):
    """The id of a process that holds HELD bytes of device 0."""
    process = start([PYTHON, HERE / "holder.py", str(HELD)], folder, DEVICES)
    try:
        expect("the holder", process.stdout.readline(), "ready\n")
        yield process.pid
    finally:
        process.communicate(timeout=HANG)


def by_nvml(folder, **environment):
    with holder(folder) as pid:
        out, _ = run([PYTHON, "-c", PROCESSES], folder, DEVICES, **environment)
    total = GIB if environment else 8 * GIB
    expect("nvidia-ml-py", out.splitlines(), [f"13050 {total}", f"[({pid}, {0 if environment else HELD})]", "[]", "Not Supported"])


def by_gpustat(folder, **environment):
    with holder(folder) as pid:
        out, _ = run([PYTHON, "-m", "gpustat", "--json"], folder, DEVICES, **environment)
    gpus = json.loads(out)["gpus"]
    expect("totals", [gpu["memory.total"] for gpu in gpus], [1024 if environment else 8192, 8192])
    expect("processes", [[(one["pid"], one["gpu_memory_usage"]) for one in gpu["processes"]] for gpu in gpus],
           [[(pid, None if environment else HELD // MIB)], []])
    expect("figures without an answer", {gpu["temperature.gpu"] for gpu in gpus} | {gpu["power.draw"] for gpu in gpus}, {None})


def by_nvitop(folder, **environment):
    with holder(folder) as pid:
        out, err = run([PYTHON, "-m", "nvitop", "--once", "--no-unicode"], folder, DEVICES, **environment)
    expect("stderr", err, "")
    expect("totals", re.findall(r"/ (\d+)MiB", out), ["1024" if environment else "8192", "8192"])
    shown = r"\S+" if environment else rf"{HELD // MIB}\.0MiB"
    expect_that(f"the holder is listed: {out}", re.search(rf"\b0 +{pid} +C +\S+ +{shown}", out))
    expect_that(f"CUDA's version is shown: {out}", "CUDA Driver Version: 13.5" in out)


def cases(name, case):
    def in_mode(mode):
        return lambda folder: case(folder, **limited(mode, f"0={GIB}"))
    return {f"{name} natively": case} | {f"{name} in mode {mode}": in_mode(mode) for mode in MODES}


main(cases("nvidia-ml-py", by_nvml) | cases("gpustat", by_gpustat) | cases("nvitop", by_nvitop))
