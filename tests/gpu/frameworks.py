"""The item `frameworks`: a small program of each framework, natively and under each variant of Ration.

Each prints numbers that must not change. Tests run beside each other, the variants of one after another.
"""
import functools
import pathlib
import re
import subprocess
import sys

import items
import pair
import tree as trees

FOLDER = trees.HERE / "frameworks"
LIMIT, SECONDS = "6GiB", 90  # all tests at once must fit the device
# test -> the program, which is named after its module, its arguments, and its settings
EXPANDABLE = {"PYTORCH_ALLOC_CONF": "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
DRIVER_POOL = {"PYTORCH_ALLOC_CONF": "backend:cudaMallocAsync", "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
JAX = {"XLA_FLAGS": "--xla_gpu_autotune_level=0 --xla_gpu_deterministic_ops=true", "JAX_PLATFORMS": "cuda"}
PROGRAMS = {
    "torch": ("torch", [], {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}),
    "jax": ("jax", [], JAX | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
    "cupy": ("cupy", [], {}),
    "numba": ("numba", [], {}),
    "torch_expandable": ("torch", [], {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"} | EXPANDABLE),
    "torch_async": ("torch", [], {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"} | DRIVER_POOL),
    "jax_preallocating": ("jax", [], JAX | {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.1"}),
    "jax_by_limit": ("jax", [], JAX),  # preallocates three quarters of what it sees: under Ration only
    "cupy_async": ("cupy", ["async"], {}),
}
UNDER_RATION_ONLY = {"jax_by_limit": "jax"}  # test -> the test with whose native run it is compared
SOME_VARIANTS = ("slab", "vmm")  # of the tests that differ from another one only in their settings
PAIR = "torch"  # also twice at once, in a group, each with a share
GROUP_LIMIT, SHARE = 7 * trees.GIB, ("--limit", "4GiB", "--guarantee", "3GiB")
MAIN = ("torch", "jax", "cupy", "numba")
ALONE_NATIVELY = ("torch_expandable",)  # maps memory until the device is full, before it is refused
# A slab that is preallocated leaves nothing to handles of the program and to the driver's pools, as the changelog's known
# gaps say: these are refused, for that reason alone.
REFUSED_BESIDE_A_SLAB = ("torch_expandable", "torch_async", "cupy_async")
SAID = re.compile(r"^= ")  # the lines that must not change
NOTED = re.compile(r"^# ")  # versions and memory: recorded


@functools.lru_cache(maxsize=None)
def interpreter(module, stated):
    """The first Python that has the module."""
    candidates = [stated] if stated else [sys.executable, *sorted(map(str, pathlib.Path("/opt").glob("*/.venv/bin/python3")))]
    for python in candidates:
        if python and has_module(python, module):
            return python
    raise items.Skip(f"no Python here has {module}")


def has_module(python, module):
    ask = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    try:
        return subprocess.run([python, "-c", ask], capture_output=True, timeout=30, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def said(out):
    return [line for line in out.splitlines() if SAID.match(line)]


def noted(out):
    return [line[2:] for line in out.splitlines() if NOTED.match(line)]


def command_of(python, name):
    module, arguments, _ = PROGRAMS[name]
    return [interpreter(module, python), "-B", FOLDER / f"{module}_hello.py", *arguments]


def as_refused(ended, figures):
    """The outcome of a run that has to end with the documented refusal."""
    holds = ended.status == 1 and "OutOfMemoryError" in ended.err and list(figures.get("reasons", {})) == ["pool_holds"]
    return items.Outcome("ok" if holds else "failed", figures | ({} if holds else ended.tail()),
                         "refused, as documented" if holds else f"not refused for reason pool_holds alone: {ended.why()}")


def run_one(check, python, references, name, variant):
    if check.tree.sim:
        raise items.Skip("needs a device that runs kernels")
    command, settings = command_of(python, name), PROGRAMS[name][2]
    reference = UNDER_RATION_ONLY.get(name, name)
    module_settings = PROGRAMS[reference][2]
    native = references.get(reference, lambda: check.run(f"frameworks.{reference}.native", command, SECONDS, **module_settings))
    if variant == trees.NATIVE:
        figures = {"seconds": round(native.seconds, 2), "said": said(native.out), "noted": noted(native.out)}
        if native.status == 0:
            return items.Outcome("ok", figures)
        return items.Outcome("skipped", figures | native.tail(), f"does not run here: {native.why()}")
    if native.status != 0:
        raise items.Skip("its native run failed: nothing to compare with")
    ended, figures = check.run_variant(f"frameworks.{name}.{variant}", variant, command, LIMIT, SECONDS, **settings)
    figures |= {"native_seconds": round(native.seconds, 2), "noted": noted(ended.out),
                "lines_of_ration": [line for line in ended.err.splitlines() if line.startswith("ration")][:8]}
    if variant == "slab" and name in REFUSED_BESIDE_A_SLAB:
        return as_refused(ended, figures)
    return items.compared(native, ended, figures, said)


def run_pair(check, python, references):
    if check.tree.sim:
        raise items.Skip("needs a device that runs kernels")
    command, settings = command_of(python, PAIR), PROGRAMS[PAIR][2]
    native = references.get(PAIR, lambda: check.run(f"frameworks.{PAIR}.native", command, SECONDS, **settings))
    if native.status != 0:
        raise items.Skip("its native run failed: nothing to compare with")
    outcome = pair.run(check, f"frameworks.{PAIR}.pair", native, command, GROUP_LIMIT, said, SHARE, SECONDS, **settings)
    if outcome.status == "ok" and outcome.figures["members_seen"] < 2:
        return items.Outcome("failed", outcome.figures, "the two never ran at once")
    return outcome


def tests(check, arguments):
    made, references = [], items.References()
    for name in PROGRAMS:
        variants = [*trees.VARIANTS] if name in MAIN or check.full else [*SOME_VARIANTS]
        if name not in UNDER_RATION_ONLY:
            variants.insert(0, trees.NATIVE)
        for variant in variants:
            is_alone = name in ALONE_NATIVELY and variant == trees.NATIVE
            made.append(items.Test(f"frameworks.{name}.{variant}", lambda name=name, variant=variant: run_one(
                check, arguments.python, references, name, variant), "" if is_alone else name))
    return [*made, items.Test(f"frameworks.{PAIR}.pair", lambda: run_pair(check, arguments.python, references), PAIR)]
