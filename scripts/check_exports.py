#!/usr/bin/env python3
"""Fails if one of the two libraries exports, or imports, symbols that it must not.

check_exports.py BUILD         checks BUILD/lib/libration.so and libration-core.so with readelf
check_exports.py --self-test   proves that each kind of leak is found
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The version that glibc gives those functions: the architecture's first (readelf of glibc 2.36).
OLDEST = {"Advanced Micro Devices X86-64": "GLIBC_2.2.5", "AArch64": "GLIBC_2.17"}
LOOKUPS = ("dlsym", "dlvsym", "dlopen", "dlmopen")
OTHERS = ("pthread_exit", "setrlimit", "setrlimit64", "prlimit", "prlimit64")
# These came later to the first architecture.
LATER = {("dlmopen", "GLIBC_2.2.5"): "GLIBC_2.3.4", ("prlimit", "GLIBC_2.2.5"): "GLIBC_2.13",
         ("prlimit64", "GLIBC_2.2.5"): "GLIBC_2.13"}
LIBRARIES = ("libration.so", "libration-core.so")
C_LIBRARY = re.compile(r"(libc|libdl|libm|libpthread|librt)\.so\.\d+|ld-linux.*\.so\.\d+")


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, str(path)], check=True, capture_output=True, text=True).stdout


def hooked_symbols():
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "shim/hook_table.inc").read_text(), flags=re.S)
    return set(re.findall(r"^RATION_(?:NVML_)?HOOK\((\w+)", text, re.M))


def read_library(path):
    """The properties that are checked, as plain values."""
    exports, unique, private = set(), set(), set()
    for line in readelf("--dyn-syms", path).splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit() or fields[4] == "LOCAL":
            continue
        if fields[6] == "UND":
            private |= {fields[7]} if "GLIBC_PRIVATE" in fields[7] else set()
            continue
        if fields[6] == "ABS" and fields[3] == "OBJECT":
            continue  # the version nodes themselves
        exports.add(fields[7])
        if fields[4] == "UNIQUE":
            unique.add(fields[7])
    dynamic = readelf("-d", path)
    return {
        "machine": re.search(r"Machine:\s+(.*)", readelf("-h", path)).group(1).strip(),
        "exports": exports,
        "unique": unique,
        "private": private,
        "needed": set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)),
        "tags": set(re.findall(r"\((\w+)\)", dynamic)),
        "nodelete": "NODELETE" in dynamic,
        "runpath": re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic),
    }


def preload_exports(machine, hooked):
    def first(name):
        return LATER.get((name, OLDEST[machine]), OLDEST[machine])

    versions = {f"{name}@{first(name)}" for name in LOOKUPS} | {f"{name}@@GLIBC_2.34" for name in LOOKUPS}
    return versions | {f"{name}@@{first(name)}" for name in OTHERS} | hooked


def compare(name, library, expected):
    """`expected`: the symbols; glibc's with their versions, ours in any version node."""
    problems = []
    found = {e if e.split("@")[0] in LOOKUPS + OTHERS else e.split("@")[0] for e in library["exports"]}
    problems += [f"{name}: exports {symbol}, which is not expected" for symbol in sorted(found - expected)]
    problems += [f"{name}: does not export {symbol}" for symbol in sorted(expected - found)]
    problems += [f"{name}: {symbol} is STB_GNU_UNIQUE and would bind across libraries" for symbol in library["unique"]]
    problems += [f"{name}: needs {symbol}, which another glibc may not have" for symbol in sorted(library["private"])]
    problems += [f"{name}: needs {lib}" for lib in sorted(library["needed"]) if not C_LIBRARY.fullmatch(lib)]
    problems += [f"{name}: has a run path {path}" for path in library["runpath"]]
    if not library["nodelete"]:
        problems.append(f"{name}: is not marked NODELETE")
    return problems


def check_preload(library, hooked):
    problems = compare("libration.so", library, preload_exports(library["machine"], hooked))
    for tag in ("INIT", "FINI", "INIT_ARRAY", "FINI_ARRAY", "PREINIT_ARRAY", "TEXTREL"):
        if tag in library["tags"]:
            problems.append(f"libration.so: has DT_{tag}: a process without CUDA would pay for it")
    return problems


def check_core(library):
    return compare("libration-core.so", library, {"ration_core_start"})


def self_test():
    hooked = hooked_symbols()
    machine = "Advanced Micro Devices X86-64"
    good = {"machine": machine, "exports": preload_exports(machine, hooked), "unique": set(),
            "private": set(), "needed": {"libc.so.6"}, "tags": {"NEEDED"}, "nodelete": True, "runpath": []}
    leaks = [
        {"exports": good["exports"] | {"mutex"}},
        {"exports": good["exports"] - {"cuMemAlloc_v2"}},
        {"exports": good["exports"] - {"dlsym@GLIBC_2.2.5"} | {"dlsym@RATION_1"}},
        {"unique": {"_ZN1aE"}},
        {"private": {"__libc_dlopen_mode@GLIBC_PRIVATE"}},
        {"needed": {"libc.so.6", "libstdc++.so.6"}},
        {"tags": {"INIT_ARRAY"}},
        {"nodelete": False},
        {"runpath": ["/opt"]},
    ]
    problems = [f"self-test: a correct library is refused: {p}" for p in check_preload(good, hooked)]
    problems += [f"self-test: accepted {leak}" for leak in leaks if not check_preload({**good, **leak}, hooked)]
    core = {**good, "exports": {"ration_core_start"}}
    problems += [f"self-test: a correct core is refused: {p}" for p in check_core(core)]
    problems += [] if check_core({**core, "exports": {"ration_core_start", "fmt"}}) else ["self-test: core leak"]
    return problems, len(leaks) + 1


def main():
    if sys.argv[1:] == ["--self-test"]:
        problems, seen = self_test()
    elif len(sys.argv) == 2:
        hooked = hooked_symbols()
        missing = [n for n in LIBRARIES if not (pathlib.Path(sys.argv[1]) / "lib" / n).is_file()]
        if missing:
            print(f"exports: {sys.argv[1]}/lib has no {' and no '.join(missing)}: build first")
            return 1
        preload, core = (read_library(pathlib.Path(sys.argv[1]) / "lib" / n) for n in LIBRARIES)
        problems = check_preload(preload, hooked) + check_core(core)
        seen = len(preload["exports"]) + len(core["exports"])
    else:
        print(__doc__)
        return 2
    print("\n".join(problems + [f"exports: {seen} checked, {len(problems)} wrong"]))
    return 1 if problems or not seen else 0


sys.exit(main())
