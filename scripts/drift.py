#!/usr/bin/env python3
"""Compares the driver functions of NVIDIA's Python bindings with the catalogue (shim/cuda_memory_api.json).

drift.py             the newest cuda-bindings that a package index has, downloaded with pip
drift.py FILE        a wheel, or a cydriver.pxd
drift.py --self-test proves that a missing function is named, and that nothing else ends as one does
drift.py --help

Names each function that the catalogue lacks, those first that have to do with memory, graphs, captures or contexts: such
a one needs an entry in the catalogue and a statement in shim/coverage.txt.

Exit status: 0 none is missing, 1 one is, 2 usage, or a file that cannot be compared, 3 no package index answers.
"""
import contextlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib

sys.dont_write_bytecode = True  # the source tree is only read
from catalogue_names import known_exports  # noqa: E402

DECLARATIONS = "cuda/bindings/cydriver.pxd"
FUNCTION = re.compile(r"^cdef \w[\w *]*?\b(cu[A-Z]\w*)\(", re.M)
# Parts of the names of functions that take, return, share, map or describe memory, or decide when it can be reused.
OURS = re.compile(r"Mem|Alloc|Free|Array|Pool|Graph|Captur|Ctx|Context|Multicast|Endpoint|Ipc|Import|Export|External|Host|"
                  r"Checkpoint|Stream|Module|Library|Limit|Pointer|Copy|Cpy")
FEWEST = 400  # the bindings of 13.0 declare 470


class Unusable(Exception):
    """Why a file cannot be compared."""


def functions_in(path):
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as wheel:
                text = wheel.read(DECLARATIONS).decode()
        else:
            text = pathlib.Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Unusable(error.strerror or str(error)) from error
    except KeyError as error:
        raise Unusable(f"it has no {DECLARATIONS}") from error
    except (UnicodeDecodeError, zipfile.BadZipFile, zlib.error, RuntimeError) as error:
        raise Unusable("neither a wheel nor a text") from error
    declared = set(FUNCTION.findall(text))
    if len(declared) < FEWEST:
        raise Unusable(f"it declares {counted(declared)}, fewer than {FEWEST}: are its declarations written in another form?")
    return declared


def counted(functions):
    return f"{len(functions)} function{'' if len(functions) == 1 else 's'}"


def missing(declared, listed):
    """Those of `declared` that are not listed, ours first."""
    return sorted(declared - listed, key=lambda name: (OURS.search(name) is None, name))


def report(source, declared, listed):
    lacking = missing(declared, listed)
    for name in lacking:
        print(f"not in the catalogue: {name}" + ("" if OURS.search(name) else " (nothing to do with memory, by its name)"))
    print(f"{source}: {counted(declared)}, {len(lacking)} not in the catalogue")
    return 1 if lacking else 0


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
        wrong += wrong_ends(pathlib.Path(folder), listed)
    print("\n".join(wrong + [f"self-test: {len(wrong)} wrong"]))
    return 1 if wrong else 0


def wrong_ends(folder, listed):
    """What ends otherwise than it should, or prints something else."""
    whole = "".join(f"cdef CUresult {name}(int a) except ?CUDA_ERROR_NOT_FOUND nogil\n" for name in sorted(listed))
    novel = "cdef CUresult cuNovelty(int a) except ?CUDA_ERROR_NOT_FOUND nogil\ncdef struct cuNo:\n"
    (folder / "whole.pxd").write_text(whole, encoding="utf-8")
    (folder / "novel.pxd").write_text(whole + novel, encoding="utf-8")
    (folder / "few.pxd").write_text(novel, encoding="utf-8")
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    for name, inside, text in (("whole.whl", DECLARATIONS, whole), ("without.whl", "other.pxd", whole)):
        with zipfile.ZipFile(folder / name, "w") as wheel:
            wheel.writestr(inside, text)
    wrong = []
    for arguments, status, part in (
            ([folder / "whole.pxd"], 0, f"whole.pxd: {len(listed)} functions, 0 not"), ([folder / "whole.whl"], 0, "0 not"),
            ([folder / "novel.pxd"], 1, "not in the catalogue: cuNovelty (nothing"),
            ([folder / "few.pxd"], 2, "few.pxd: it declares 1 function, fewer than 400"),
            ([folder / "without.whl"], 2, f"without.whl: it has no {DECLARATIONS}"), ([folder / "binary"], 2, "neither"),
            ([folder / "none"], 2, "none: No such file"), ([folder], 2, "Is a directory"), (["--help"], 0, "drift.py FILE"),
            (["--bogus"], 2, "usage:"), ([folder / "whole.pxd", folder / "few.pxd"], 2, "usage:")):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            ended = run([str(argument) for argument in arguments])
        shown, other = (err, out) if status == 2 else (out, err)
        if ended != status or part not in shown.getvalue() or other.getvalue():
            wrong.append(f"self-test: {[str(argument) for argument in arguments]}: status {ended} and {out.getvalue()!r}, "
                         f"{err.getvalue()!r}, expected {status} and {part!r}")
    return wrong


def run(arguments):
    if arguments in (["--help"], ["-h"]):
        print(__doc__.strip())
        return 0
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print("usage: drift.py [FILE | --self-test | --help]", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(arguments[0]) if arguments else newest(folder)
        if source is None:
            return 3
        try:
            return report(source.name, functions_in(source), known_exports())
        except Unusable as why:
            print(f"drift: {source}: {why}", file=sys.stderr)
            return 2


sys.exit(self_test() if sys.argv[1:] == ["--self-test"] else run(sys.argv[1:]))
