#!/usr/bin/env python3
"""Beside a framework that reads XLA_* and TF_* itself they are left to it: a stand-in for each library, loaded before
the first CUDA call and after it."""
import pathlib
import re
import shutil

from harness import BUILD, GIB, expect, expect_that, main, of_type, run

ROOT = pathlib.Path(__file__).parents[3]
STAND_IN = BUILD / "tests/command/run/xla_cuda_plugin.so"
FRAMEWORKS = re.findall(r'^    "([a-z_]+\.so)"', (ROOT / "shim/runtime/loaded_framework.cc").read_text(), re.M)
THEIRS = set(re.findall(r'^    {"((?:XLA|TF)_[A-Z_]+)",', (ROOT / "config/third_party/variables.cc").read_text(), re.M))
# For each a value that has an effect without a framework.
VALUES = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.25", "XLA_CLIENT_MEM_FRACTION": "0.25+", "XLA_PYTHON_CLIENT_ALLOCATOR": "platform",
          "XLA_PYTHON_CLIENT_PREALLOCATE": "true", "TF_GPU_ALLOCATOR": "cuda_malloc_async", "TF_FORCE_GPU_ALLOW_GROWTH": "false",
          "TF_FORCE_UNIFIED_MEMORY": "1", "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC": "-1", "TF_DETERMINISTIC_ALLOCATOR": "1"}
OURS = {"RATION_LIMIT": "1GiB", "RATION_MODE": "async", "RATION_ASYNC_PREALLOCATE": "512MiB"}
MACHINE = {"SIMCUDA_DEVICES": "4GiB", "SIMCUDA_CONTEXT_BYTES": "1"}
USE = ("context=0", "alloc=100m")


def seen(folder, *steps, **environment):
    done = run("steps", *steps, folder=folder, HOME=folder, XDG_CONFIG_HOME=folder, RATION_STATE_DIR=f"{folder}/state",
               **MACHINE | environment)
    expect_that(f"{steps}: {done.out} {done.err}", done.status == 0 and done.err == "" and ": 1\n" not in done.out)
    records = done.logs["run.jsonl"]
    return records[0], of_type(records, "slab_alloc")


def stand_in(folder, name):
    path = pathlib.Path(folder) / name
    shutil.copy(STAND_IN, path)
    return f"open={path}"


def left(variable):
    def case(folder):
        meta, slabs = seen(folder, stand_in(folder, FRAMEWORKS[0]), "init", *USE, **{variable: VALUES.get(variable, "1")})
        expect("standing", [(word["variable"], word["standing"]) for word in meta["foreign"]], [(variable, "left")])
        expect_that(meta["foreign"][0]["reason"], FRAMEWORKS[0] in meta["foreign"][0]["reason"])
        expect("mode and limit", (meta["mode"], meta["devices"][0]["limit_asked"]), ("pool", False))
        expect_that(f"preallocated {slabs}", all(slab["why"] != "preallocate" for slab in slabs))
    return case


def of_name(name):
    def case(folder):
        meta, _ = seen(folder, stand_in(folder, name), "init", *USE, XLA_PYTHON_CLIENT_MEM_FRACTION="0.25")
        expect("standing", [word["standing"] for word in meta["foreign"]], ["left"])
        expect("limit asked", meta["devices"][0]["limit_asked"], False)
    return case


def later(folder):
    """A framework that is loaded after the first CUDA call has no effect."""
    meta, slabs = seen(folder, "init", USE[0], stand_in(folder, FRAMEWORKS[0]), USE[1], XLA_PYTHON_CLIENT_MEM_FRACTION="0.25")
    expect("limit", (meta["devices"][0]["limit"], meta["foreign"][0]["standing"]), (GIB, "honoured"))
    expect("preallocated", sum(slab["size"] for slab in slabs if slab["why"] in ("preallocate", "check")), GIB)


def another_name(folder):
    meta, _ = seen(folder, stand_in(folder, "libxla_cuda_plugin.so"), "init", *USE, XLA_PYTHON_CLIENT_MEM_FRACTION="0.25")
    expect("limit", meta["devices"][0]["limit"], GIB)


def ours_beside_it(folder):
    """Our own settings hold beside a framework, and so do limits that it does not read itself."""
    meta, _ = seen(folder, stand_in(folder, FRAMEWORKS[0]), "init", *USE, XLA_PYTHON_CLIENT_MEM_FRACTION="0.9", **OURS)
    expect("ours", (meta["mode"], meta["devices"][0]["limit"]), ("async", GIB))
    meta, slabs = seen(folder, stand_in(folder, FRAMEWORKS[0]), "init", *USE, CUDA_DEVICE_MEMORY_LIMIT="1g", RATION_PREALLOCATE="1GiB")
    expect("HAMi's", (meta["devices"][0]["group_limit"], [word["standing"] for word in meta["foreign"]]), (GIB, ["honoured"]))
    expect("preallocated, as asked", sum(slab["size"] for slab in slabs if slab["why"] in ("preallocate", "check")), GIB)


def nothing_set(folder):
    """The framework preallocates by its own rules: two such pieces do not fit."""
    meta, slabs = seen(folder, stand_in(folder, FRAMEWORKS[0]), "init", *USE)
    expect_that(f"preallocated {slabs}", all(slab["why"] != "preallocate" for slab in slabs))
    expect("said", (meta["settings"]["preallocate"]["value"], meta["settings"]["preallocate"]["source"]), ("false", "foreign"))


expect_that(f"frameworks {FRAMEWORKS}, variables {THEIRS}", len(FRAMEWORKS) >= 6 and set(VALUES) < THEIRS)
main({f"left: {variable}": left(variable) for variable in sorted(THEIRS)}
     | {f"of name {name}": of_name(name) for name in [*FRAMEWORKS, "libtensorflow_framework.so.2", "libtensorflow_cc.so.2.21"]}
     | {"loaded later": later, "another name": another_name, "ours beside it": ours_beside_it, "nothing set": nothing_set})
