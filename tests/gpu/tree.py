"""Where programs and libraries lie, and how they are started: natively, under Ration, on the simulated driver or not.

A tree is a build folder, or what pack.py copied of one: the same places in both.
"""
import collections
import json
import os
import pathlib
import shutil
from dataclasses import dataclass

import runs

SOURCE = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
MIB, GIB = 1 << 20, 1 << 30
NATIVE = "native"
# How a program is run under Ration: the settings of each variant. `logged` has the defaults and writes a log, which closes
# the fast path.
VARIANTS = {
    "slab": {"RATION_BACKING": "slab"},
    "vmm": {"RATION_BACKING": "vmm"},
    "async": {"RATION_MODE": "async"},
    "direct": {"RATION_MODE": "direct"},
    "logged": {},
}
FOREIGN = ("RATION_", "SIMCUDA_", "LD_PRELOAD", "CUDA_VISIBLE", "CUDA_DEVICE_MEMORY", "CUDA_MPS", "XLA_", "TF_", "GPU_",
           "CUPY_GPU_MEMORY", "PYTORCH_")
SUMMARY = ("--summary", "json")  # for summary_figures()


@dataclass
class Tree:
    build: pathlib.Path
    sim: bool
    scratch: pathlib.Path
    state: pathlib.Path  # RATION_STATE_DIR

    def path(self, relative):
        return self.build / relative

    def has(self, relative):
        return os.access(self.path(relative), os.X_OK)

    def environment(self, **settings):
        """This process's environment without other settings of ours or of frameworks."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
        clean["RATION_STATE_DIR"] = str(self.state)
        if self.sim:
            clean["LD_LIBRARY_PATH"] = str(self.path("lib/ration/sim"))
            clean["SIMCUDA_DEVICES"] = "16GiB"
            clean["SIMCUDA_MACHINE"] = str(self.scratch / "machine")
        return clean | {key: str(value) for key, value in settings.items()}

    def under(self, variant, command, limit=None, options=(), log=None):
        """The command and the settings of a run in this variant; NATIVE: without Ration."""
        if variant == NATIVE:
            return [str(word) for word in command], {}
        line = [self.path("bin/ration"), "run", *(["--limit", limit] if limit else []), *options]
        if log:
            line += ["--log", log]
        return [str(word) for word in [*line, "--", *command]], dict(VARIANTS[variant])


def make_state_folder(scratch):
    """In memory where possible: stacked file systems lose the locks that show that a process lives."""
    shared = pathlib.Path("/dev/shm")
    parent = shared if os.access(shared, os.W_OK) else scratch
    folder = parent / f"ration-check-{os.getpid()}"
    folder.mkdir(mode=0o700)
    return folder


def toolkit():
    """The CUDA toolkit's folder, None without nvcc."""
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    return pathlib.Path(nvcc).resolve().parents[1] if nvcc else None


def summary_figures(err):
    """What `ration run --summary json` says, over all processes: the largest peaks, and refusals."""
    documents = [json.loads(line) for line in err.splitlines() if line.startswith('{"schema":"ration.summary/')]
    devices = [device for document in documents for process in document["processes"] for device in process["devices"]]
    if not devices:
        return {}
    reasons = collections.Counter()
    for device in devices:
        reasons.update({reason: count for reason, count in device["refusals_by_reason"].items() if count})
    return {"peak": max(device["peak_bytes"] for device in devices), "refused": sum(reasons.values()),
            "reserved_peak": max(device["reserved_peak_bytes"] for device in devices)} | ({"reasons": dict(reasons)} if reasons else {})
