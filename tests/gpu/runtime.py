"""The item `runtime`: programs of tests/gpu/runtime with NVIDIA's runtime, natively and under each variant of Ration.

nvcc builds them: here, or where pack.py ran. Over the simulator some of them run with the simulator's small runtime.
"""
import concurrent.futures
import functools
import os
import pathlib
import subprocess
import sys
import threading

import items
import pair
import tree as trees

FOLDER = "tests/gpu/runtime"
OVER_SIM = "tests/gpu/programs/{}_sim"
EXAMPLE = trees.SOURCE / "examples/share_one_gpu"
SOURCES = trees.HERE / "runtime"
# name -> sources and options of nvcc
BUILDS = {
    **{name: [SOURCES / f"{name}.cu", "-cudart", "static"] for name in ("churn", "full", "kinds", "capture", "sgemm")},
    "churn_shared": [SOURCES / "churn.cu", "-cudart", "shared"],
    **{f"runtime_fill_{kind}": [EXAMPLE / "runtime_fill.cc", EXAMPLE / "fill.cc", "-cudart", kind]
       for kind in ("static", "shared")},
}
# name of the test -> program and arguments
PROGRAMS = {
    "churn": ["churn"], "churn_shared": ["churn_shared"], "churn_async": ["churn", "1500", "async"], "kinds": ["kinds"],
    "capture": ["capture"], "sgemm": ["sgemm"], "full": ["full"], "full_async": ["full", "async"],
}
NAMES_OVER_SIM = ("churn", "churn_async", "full", "full_async")
TAKES_ALL = ("full", "full_async")  # natively: alone
LIMIT, GROUP_LIMIT, ROUNDS_IF_FULL = "6GiB", 3 * trees.GIB, "12000"
_building = threading.Lock()


def build(folder, architecture):
    """Builds what is missing, several at a time; returns name -> why it could not be built."""
    home = trees.toolkit()
    if not home:
        return {name: "no nvcc" for name in BUILDS}
    folder.mkdir(parents=True, exist_ok=True)

    def one(name):
        if (folder / name).exists():
            return None
        command = [home / "bin/nvcc", "-std=c++17", "-O2", f"-arch={architecture}", *BUILDS[name], "-o", folder / name,
                   "-lpthread", "-ldl"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=240, check=False)
        return done.stderr[-600:] or f"nvcc ended with {done.returncode}" if done.returncode else None
    with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as workers:
        answers = dict(zip(BUILDS, workers.map(one, BUILDS)))
    return {name: why for name, why in answers.items() if why}


@functools.lru_cache(maxsize=None)
def build_here(folder):
    return build(folder, "native")


def program(check, name):
    """Its path; built first where it did not come along."""
    brought = check.tree.path(f"{FOLDER}/{name}")
    if brought.exists():
        return brought
    folder = check.tree.scratch / "runtime"
    with _building:
        problems = build_here(folder)
    if name in problems:
        raise items.Skip(f"not built: {problems[name]}")
    return folder / name


@functools.lru_cache(maxsize=None)
def cuda_libraries():
    """Folders with NVIDIA's libraries: the toolkit's, then those of Python packages."""
    found = [trees.toolkit() / "lib64"] if trees.toolkit() else []
    for home in {pathlib.Path(sys.prefix), *pathlib.Path("/opt").glob("*/.venv")}:
        found += sorted(home.glob("lib/python3*/site-packages/nvidia/*/lib"))
    return [folder for folder in found if folder.is_dir()]


def library_path(check):
    if check.tree.sim:
        return str(check.tree.path("lib/ration/sim"))
    folders = [str(folder) for folder in cuda_libraries() if list(folder.glob("libcudart.so.1*"))][:1]
    return ":".join([*folders, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])


def cublas():
    for folder in cuda_libraries():
        for library in sorted(folder.glob("libcublas.so.1*")):
            return library
    raise items.Skip("no cuBLAS")


def command_of(check, name):
    first, *arguments = PROGRAMS[name]
    if check.tree.sim:
        return [check.tree.path(OVER_SIM.format(first)), *(["60", *arguments[1:]] if first == "churn" else arguments)]
    if first == "churn" and check.full:
        arguments = [ROUNDS_IF_FULL, *arguments[1:]]
    return [program(check, first), *([cublas()] if first == "sgemm" else arguments)]


def environment_of(check, name):
    folders = [library_path(check)]
    if name == "sgemm" and not check.tree.sim:
        folders.insert(0, str(cublas().parent))
    return {"LD_LIBRARY_PATH": ":".join(filter(None, folders))}


def run_one(check, references, name, variant):
    command, settings = command_of(check, name), environment_of(check, name)
    native = references.get(name, lambda: check.run(f"runtime.{name}.native", command, **settings))
    if variant == trees.NATIVE:
        figures = {"seconds": round(native.seconds, 2), "output": native.out.splitlines()[:20]}
        return items.Outcome("failed" if native.status else "ok", figures | (native.tail() if native.status else {}),
                             native.why() if native.status else "")
    ended, figures = check.run_variant(f"runtime.{name}.{variant}", variant, command, LIMIT, **settings)
    outcome = items.compared(native, ended, figures | {"native_seconds": round(native.seconds, 2)}, str.splitlines)
    return outcome


def run_pair(check, references):
    command, settings = command_of(check, "churn"), environment_of(check, "churn")
    native = references.get("churn", lambda: check.run("runtime.churn.native", command, **settings))
    return pair.run(check, "runtime.group", native, command, GROUP_LIMIT, str.splitlines, **settings)


def tests(check, _):
    references = items.References()
    names = NAMES_OVER_SIM if check.tree.sim else PROGRAMS
    made = []
    for name in names:
        for variant in (trees.NATIVE, *trees.VARIANTS):
            lane = "" if name in TAKES_ALL and variant == trees.NATIVE else name
            made.append(items.Test(f"runtime.{name}.{variant}",
                                   lambda name=name, variant=variant: run_one(check, references, name, variant), lane))
    return made + [items.Test("runtime.group", lambda: run_pair(check, references), "churn")]
