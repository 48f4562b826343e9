"""Copies what another machine needs of a build folder, without symbols, into a folder that --prebuilt then runs from.

The tree's own sources (scripts/, tests/gpu/, the catalogue of the driver's functions) travel with the checkout.
"""
import os
import shutil
import subprocess
import sys

import conformance
import costs
import members
import questions
import runtime
import tree as trees
import wheel

LIBRARIES = ("lib/libration.so", "lib/libration-core.so", "lib/ration/sim/libcuda.so.1", "lib/ration/sim/libnvidia-ml.so.1")
PROGRAMS = ("bin/ration", conformance.PROGRAM, members.PROGRAM, costs.PROGRAM, costs.FIRST, costs.STITCH, "examples/share_one_gpu/driver_fill",
            "bin/ration-example", *(runtime.OVER_SIM.format(name) for name in ("churn", "full")))


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source.resolve(), target)  # a link becomes the file
    if shutil.which("strip"):
        subprocess.run(["strip", "--strip-unneeded", target], check=False, stderr=subprocess.DEVNULL)


def pack(build, target, commit):
    shutil.rmtree(target, ignore_errors=True)
    asked = [program.relative_to(build) for program in sorted((build / questions.FOLDER).glob("*"))
             if os.access(program, os.X_OK) and program.is_file()]
    missing = []
    for relative in (*LIBRARIES, *PROGRAMS, *asked):
        if (build / relative).exists():
            copy(build / relative, target / relative)
        else:
            missing.append(relative)
    made = wheel.built(trees.SOURCE / "dist")
    if made:
        (target / wheel.FOLDER).mkdir()
        shutil.copy2(made, target / wheel.FOLDER)
    else:
        print("pack: no wheel in dist/, which scripts/package.sh makes", file=sys.stderr)
    problems = runtime.build(target / runtime.FOLDER, "sm_90")
    (target / "tests/gpu").mkdir(parents=True, exist_ok=True)
    (target / "tests/gpu/commit").write_text(f"{commit}\n", encoding="utf-8")
    total = sum(file.stat().st_size for file in target.rglob("*") if file.is_file())
    for what in missing:
        print(f"pack: {what} is not built", file=sys.stderr)
    for name, why in problems.items():
        print(f"pack: {name} is left to the other machine: {why.splitlines()[0]}", file=sys.stderr)
    print(f"pack: {total / 2**20:.1f} MiB in {target}")
    return 1 if missing else 0
