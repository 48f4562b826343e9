"""What the tests of real engines share: the build, programs for jobs, a machine, and when an engine cannot run here.

The environment comes from ration_preload_test (preload_test.cmake).
"""
import os
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
SOURCE = TESTS.parent
sys.path.insert(0, str(TESTS / "preload"))

import harness  # noqa: E402
from harness import (  # noqa: E402, F401
    BUILD, GIB, HANG, MIB, Failure, clean_environment, expect, expect_that, main, of_type, read_log, skip)

RATION = BUILD / "bin/ration"
LIBRARY = BUILD / "lib/libration.so"
SIMULATOR = BUILD / "lib/ration/sim"
PACKAGE = SOURCE / "shim/python"  # on PYTHONPATH, with `ration` of the build first on PATH
EXAMPLES = SOURCE / "examples"


def needs(program, package):
    """As the harness's, of what the engines need beside the other tests."""
    harness.needs(program, package, "scripts/setup.sh --engines")


def python():
    """The interpreter with the packages of requirements.txt. Skipped only if no package index answers."""
    made = subprocess.run([TESTS / "python_env.sh", BUILD, pathlib.Path(__file__).parent / "requirements.txt", "engines"],
                          stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode == 3:
        skip("no package index answers")
    expect("python_env.sh", made.returncode, 0)
    return made.stdout.strip()


def simulated(folder, devices="16GiB", **settings):
    """The environment of an engine whose jobs share one simulated machine in `folder`, without Ration."""
    machine = pathlib.Path(folder) / "machine"
    machine.mkdir(exist_ok=True)
    return clean_environment() | {"LD_LIBRARY_PATH": str(SIMULATOR), "SIMCUDA_DEVICES": devices, "SIMCUDA_MACHINE": str(machine),
                                  "RATION_STATE_DIR": str(pathlib.Path(folder) / "state"),
                                  "PATH": f"{RATION.parent}:{os.environ['PATH']}"} | settings
