#!/usr/bin/env python3
"""aarch64_test.py SOURCE [--callers]: builds library, simulated driver and some programs for aarch64 and runs them under qemu-user.

--callers: the preload library alone, with the programs that ask for the next definition; the core takes minutes to build.

The build stays in PRELOAD_BUILD/aarch64, so that only the first run pays for all of it. Ends with 77 (skipped), saying
what is missing, where the tools are not installed.
"""
import os
import pathlib
import shutil
import subprocess
import sys

LEVELS = ("O0", "O2")
PROGRAMS = ("linked_lazy linked_no_plt linked_address looked_up by_proc_address deep_bound deep_bound_library "
            "own_definition early_and_late processes race")
ROUTES = ("linked/lazy linked/no_plt linked/address_taken opened/soname opened/absolute looked_up/by_dlsym_libc "
          "looked_up/by_dlvsym_first looked_up/by_dlvsym_newest looked_up/default_global proc_address/v2_nested "
          "proc_address/v1_nested deep_bound/direct deep_bound/dlsym own/program moments/preinit moments/destructor "
          "processes/fork threads/race_linked")
# qemu-user keeps an entry for each page of a reserved range, which of a 16 GiB device takes it 45 s for each program.
DEVICE = "2GiB"
LIBRARIES = "/usr/aarch64-linux-gnu"
PREFIX = "aarch64-linux-gnu-"


def missing():
    tools = [tool for tool in (PREFIX + "gcc", PREFIX + "g++", "qemu-aarch64", "cmake", "ninja") if not shutil.which(tool)]
    return tools or [path for path in (LIBRARIES + "/lib/libstdc++.so.6",) if not os.path.exists(path)]


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stdout[-6000:]}")
    return done.stdout


def build(source, folder, targets):
    run("cmake", "-S", source / "tests/preload/aarch64", "-B", folder, "-G", "Ninja", f"-DRATION_SOURCE={source}",
        "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", f"-DCMAKE_C_COMPILER={PREFIX}gcc",
        f"-DCMAKE_CXX_COMPILER={PREFIX}g++", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1")
    run("cmake", "--build", folder, "--target", *targets)


def main():
    absent = missing()
    if absent:
        print("skipped: not installed:", *absent)
        sys.exit(77)
    source = pathlib.Path(sys.argv[1]).resolve()
    folder = pathlib.Path(os.environ["PRELOAD_BUILD"]) / "aarch64"
    targets = ["ration_preload", *(f"preload_next_who_{level}" for level in LEVELS)]
    only_callers = "--callers" in sys.argv[2:]
    if not only_callers:
        targets += ["ration_core", "simcuda", *(f"preload_{name}" for name in PROGRAMS.split())]
    build(source, folder, targets)
    runner = f"qemu-aarch64 -L {LIBRARIES}"
    environment = os.environ | {"PRELOAD_BUILD": str(folder), "PRELOAD_PROGRAMS": f"{folder}/programs",
                                "PRELOAD_LIBRARIES": f"{folder}/lib/libration.so", "PRELOAD_RUNNER": runner, "PRELOAD_DEVICE": DEVICE}
    # The caller's identity first: it is what the assembly is for.
    for level in LEVELS:
        chain = run(*runner.split(), "-E", f"LD_LIBRARY_PATH={folder}/programs",
                    "-E", f"LD_PRELOAD={folder}/lib/libration.so", folder / "programs" / f"next_who_{level}")
        if chain != "linked BC next BC\n":
            sys.exit(f"RTLD_NEXT at {level}: {chain!r}")
    if only_callers:
        return
    asked = ROUTES.split()
    text = run(sys.executable, source / "tests/preload/routes_test.py", *asked, env=environment)
    print(text)
    if f"covered: {len(asked)} of {len(asked)}" not in text:
        sys.exit(f"not {len(asked)} routes")


main()
