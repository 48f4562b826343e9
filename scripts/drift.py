#!/usr/bin/env python3
"""Compares the driver functions of NVIDIA's Python bindings with the catalogue (tests/simcuda/cuda_memory_api.json).

drift.py             the newest cuda-bindings that a package index has, downloaded with pip
drift.py FILE        a wheel, or a cydriver.pxd
drift.py --self-test proves that a missing function is named

Names each function that the catalogue lacks, those first that have to do with memory, graphs, captures or contexts: such
a one needs an entry in the catalogue and a statement in tests/coverage.txt. The exit status is 1 if there is one, 3 if no
package index answers.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

sys.dont_write_bytecode = True  # the source tree is only read
from catalogue_names import known_exports  # noqa: E402

DECLARATIONS = "cuda/bindings/cydriver.pxd"
FUNCTION = re.compile(r"^cdef \w[\w *]*?\b(cu[A-Z]\w*)\(", re.M)
# Parts of the names of functions that take, return, share, map or describe memory, or decide when it can be reused.
OURS = re.compile(r"Mem|Alloc|Free|Array|Pool|Graph|Captur|Ctx|Context|Multicast|Endpoint|Ipc|Import|Export|External|Host|"
                  r"Checkpoint|Stream|Module|Library|Limit|Pointer|Copy|Cpy")


def functions_in(path):
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as wheel:
            text = wheel.read(DECLARATIONS).decode()
    else:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    return set(FUNCTION.findall(text))


def missing(declared, listed):
    """Those of `declared` that are not listed, ours first."""
    return sorted(declared - listed, key=lambda name: (OURS.search(name) is None, name))


def report(source, declared, listed):
    lacking = missing(declared, listed)
    for name in lacking:
        print(f"not in the catalogue: {name}" + ("" if OURS.search(name) else " (nothing to do with memory, by its name)"))
    print(f"{source}: {len(declared)} functions, {len(lacking)} not in the catalogue")
    return 1 if lacking or len(declared) < 400 else 0  # the bindings of 13.0 declare 470


def newest(folder):
    """The wheel, or None: no index answers."""
    done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                           "--only-binary", ":all:", "--dest", folder, "cuda-bindings"], check=False, capture_output=True, text=True)
    wheels = sorted(pathlib.Path(folder).glob("cuda_bindings-*.whl"))
    if not wheels:
        print(f"no package index has cuda-bindings for this Python: {done.stderr.strip()[-300:]}", file=sys.stderr)
    return wheels[0] if wheels else None


def self_test():
    listed = known_exports()
    wrong = []
    for name in ("cuMemAlloc_v2", "cuStreamBeginRecaptureToGraph", "cuGraphAddNode_v3", "cuDeviceGetCount"):
        if missing(listed, listed - {name}) != [name]:
            wrong.append(f"self-test: {name} was taken out of the catalogue and not named")
    if missing({"cuDeviceGetNovelty", "cuGraphNovelty"}, listed) != ["cuGraphNovelty", "cuDeviceGetNovelty"]:
        wrong.append("self-test: a function of graphs is not named before another one")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "cydriver.pxd"
        path.write_text("cdef CUresult cuNovelty(int a) except ?CUDA_ERROR_NOT_FOUND nogil\ncdef struct cuNo:\n", encoding="utf-8")
        if functions_in(path) != {"cuNovelty"} or report(path.name, functions_in(path), listed) != 1:
            wrong.append("self-test: a declared function was not read")
    print("\n".join(wrong + [f"self-test: {len(wrong)} wrong"]))
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) == 2:
        return report(pathlib.Path(sys.argv[1]).name, functions_in(sys.argv[1]), known_exports())
    if len(sys.argv) != 1:
        print(__doc__)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        wheel = newest(folder)
        return 3 if wheel is None else report(wheel.name, functions_in(wheel), known_exports())


sys.exit(main())
