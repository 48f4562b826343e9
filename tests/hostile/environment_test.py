#!/usr/bin/env python3
"""Programs that sanitise their environment in place before their first CUDA call (sanitising.cc)."""
import os
import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "preload"))
from harness import (GIB, HANG, LIBRARIES, PROGRAMS, clean_environment, driver_folder, expect, expect_that, main,  # noqa: E402
                     run)

WAYS = {"environ = empty": "empty", "environ = nullptr": "null", "clearenv()": "clearenv", "unsetenv() of each": "unset"}
HIDDEN = {"clearenv(), and /proc tells nothing": "hidden"}
ONE = {"RATION_LIMIT": "1GiB"}
INERT = ONE | {"RATION_DISABLE": "1"}
LOOK = "init context=0 query"  # shows the total, and so the limit of the process
CLEAR = "import os, ctypes; os.environ.clear(); cuda = ctypes.CDLL('libcuda.so.1'); " \
        "n = ctypes.c_size_t(); c = ctypes.c_void_p(); " \
        "assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(c), 0, 0) == 0; " \
        "assert cuda.cuDeviceTotalMem_v2(ctypes.byref(n), 0) == 0; print(n.value)"


def totals(folder, way, *steps, program="steps", **settings):
    preload = f"{LIBRARIES}:{PROGRAMS}/libsanitising.so"
    done = run(program, *steps, preload=preload, SANITISE=way, **{"HOME": folder, "XDG_CONFIG_HOME": folder} | settings)
    expect_that(f"status {done.status}: {done.out} {done.err}", done.status == 0 and done.err == "")
    expect("what failed", [line for line in done.out.splitlines() if re.search(r"(: [1-9]\d*|status [1-9]\d*)$", line)], [])
    return [int(number) for number in re.findall(r' total=(\d+)|"v1":\[(\d+)', done.out) for number in number if number]


def device(folder):
    return totals(folder, "-", *LOOK.split())[0]


def shown(way, *steps, wanted, **settings):
    return lambda folder: expect("totals", totals(folder, way, *steps, **settings),
                                 [device(folder) if each is None else each for each in wanted])


def held(way):
    """Each place that a limit comes from."""
    def case(folder):
        for settings in ({"RATION_LIMIT": "1GiB"}, {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.25"},
                         {"CUDA_DEVICE_MEMORY_LIMIT_0": "1g"}, {"RATION_CONFIG": written(folder, "named.json")},
                         {"HOME": str(pathlib.Path(written(folder, "home/.config/ration/config.json")).parents[2]),
                          "XDG_CONFIG_HOME": ""}):
            wanted = device(folder) // 4 if "XLA_PYTHON_CLIENT_MEM_FRACTION" in settings else GIB
            expect(f"under {settings}", totals(folder, way, *LOOK.split(), **settings), [wanted])
    return case


def written(folder, name):
    path = pathlib.Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"limit": "1GiB"}')
    return str(path)


def logged(folder):
    """The log and the group of the start hold too, and the log has their variables."""
    done = run("steps", *LOOK.split(), "alloc=1m", preload=f"{LIBRARIES}:{PROGRAMS}/libsanitising.so", folder=folder, SANITISE="empty",
               RATION_LIMIT="1GiB", RATION_GROUP="team", RATION_STATE_DIR=f"{folder}/state", RATION_MODE="direct")
    expect("stderr", done.err, "")
    meta = done.logs["run.jsonl"][0]
    expect("mode and group", (meta["mode"], meta["settings"]["group"]["value"]), ("direct", "team"))
    expect("limit", meta["settings"]["limit"]["value"], "1GiB")
    expect("variables", meta["env"]["RATION_LIMIT"], "1GiB")
    expect_that("the group's file is where it was asked for", len(os.listdir(f"{folder}/state")) > 0)


def by_python(folder):
    environment = clean_environment() | {"LD_PRELOAD": LIBRARIES, "LD_LIBRARY_PATH": str(driver_folder("sim")),
                                         "RATION_LIMIT": "1GiB", "HOME": folder}
    done = subprocess.run([sys.executable, "-c", CLEAR], env=environment, capture_output=True, text=True, timeout=HANG, check=False)
    expect(f"status, having said {done.stderr}", done.returncode, 0)
    expect("total", int(done.stdout), GIB)


def inert(way):
    def case(_):
        done = run("probe", preload=f"{LIBRARIES}:{PROGRAMS}/libsanitising.so", SANITISE=way, **INERT)
        expect("status and stderr", (done.status, done.err), (0, ""))
        expect_that(f"no core is loaded: {done.out}", "core=0" in done.out)
    return case


def watched(way):
    def case(folder):
        seen = totals(folder, way, "start", "index=0", program="monitor", RATION_LIMIT="1GiB")
        expect("what NVML says", seen, [GIB])
    return case


LATER = "set=RATION_LIMIT=2GiB"

main({f"{name}: a limit holds": held(way) for name, way in (WAYS | HIDDEN).items()}
     | {f"{name}: a disabled process stays so": inert(way) for name, way in WAYS.items()}
     | {f"{name}: a monitor shows the limit": watched(way) for name, way in (WAYS | HIDDEN).items()}
     | {
         "Python's os.environ.clear()": by_python,
         "its log and its group": logged,
         "a forked child": shown("empty", f"child:{'+'.join(LOOK.split())}", wanted=[GIB], **ONE),
         "a limit that is set after that counts": shown("empty", LATER, *LOOK.split(), wanted=[2 * GIB], **ONE),
         "a limit that changes counts": shown("-", LATER, *LOOK.split(), wanted=[2 * GIB], **ONE),
         "a limit that was absent and is set later counts": shown("-", LATER, *LOOK.split(), wanted=[2 * GIB]),
         "a field's variable that is set later counts": shown("-", "set=CUDA_DEVICE_MEMORY_LIMIT=2g", *LOOK.split(), wanted=[2 * GIB]),
         "RATION_DISABLE=0 that is set later enables": shown("empty", "set=RATION_DISABLE=0", *LOOK.split(), wanted=[GIB], **INERT),
         "RATION_DISABLE=1 that is set later disables": shown("empty", "set=RATION_DISABLE=1", *LOOK.split(), wanted=[None], **ONE),
         "an empty variable is not absent": shown("-", "set=XLA_PYTHON_CLIENT_MEM_FRACTION=", *LOOK.split(), wanted=[None],
                                                  XLA_PYTHON_CLIENT_MEM_FRACTION="0.25"),
         "a title over the variables, which moved": shown("title", *LOOK.split(), wanted=[GIB], **ONE),
         "a title over the variables, which are gone": shown("Title", *LOOK.split(), wanted=[None], **ONE),
     })
