#!/usr/bin/env python3
"""`ration run --sim` says, once and in one line, that NVIDIA's runtime does not work with a simulated driver; and says it of no
program that works: sim_runtime_test.py SOURCE_DIR"""
import pathlib
import subprocess
import sys

from client import NO_INDEX
from harness import BUILD, HANG, clean_environment, command_environment, expect, expect_that, main

SOURCE = pathlib.Path(sys.argv[1])
SENTENCE = "NVIDIA's runtime (libcudart), which does not work with simulated GPUs"
# What the runtime does at its first call, twice.
ASKS = """
import ctypes
driver, table = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
driver.cuInit(0)
for _ in range(2):
    assert driver.cuGetExportTable(ctypes.byref(table), bytes(16)) == 500
"""
# A program of the driver API.
WORKS = """
import ctypes
driver, block, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_uint64(), ctypes.c_void_p()
assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0 and driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(1 << 20)) == 0
"""
# NVIDIA's own. To ask for its version is no work with a device.
RUNTIME = """
import ctypes, sys
runtime, block, version = ctypes.CDLL({path!r}), ctypes.c_void_p(), ctypes.c_int()
assert runtime.cudaRuntimeGetVersion(ctypes.byref(version)) == 0 and version.value >= 13000
sys.exit(1 if {work} and runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(1 << 20)) != 0 else 0)
"""


def ration(*words):
    return subprocess.run([BUILD / "bin/ration", *words], env=command_environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=HANG, check=False)


def said(program, *options, status=0):
    done = ration("run", "--sim", "4GiB", *options, "--", sys.executable, "-c", program)
    expect(f"status, having said {done.stderr!r}", done.returncode, status)
    return [line for line in done.stderr.splitlines() if "libcudart" in line]


def once(_):
    for options in ((), ("--limit", "1GiB"), ("--group-tree=1GiB",)):
        lines = said(ASKS, *options)
        expect("lines", len(lines), 1)
        expect_that(lines[0], lines[0].startswith("ration: run: python3") and f"uses {SENTENCE}" in lines[0] and "use a real GPU" in lines[0])
    expect("with --quiet", len(said(ASKS, "-q")), 1)  # an error


def several(_):
    line = said(f"import subprocess, sys\nfor _ in range(3): subprocess.run([sys.executable, '-c', {ASKS!r}], check=True)")
    expect("lines", len(line), 1)
    expect_that(line[0], f"and 2 others use {SENTENCE}" in line[0])


def nested(_):
    """The run that simulates says it."""
    done = ration("run", "--sim", "4GiB", "--", BUILD / "bin/ration", "run", "--limit", "1GiB", "--", sys.executable, "-c", ASKS)
    expect(f"lines of {done.stderr!r}", done.stderr.count("libcudart"), 1)


def works(_):
    expect("lines", said(WORKS), [])
    expect("without CUDA", said("pass"), [])


def without_ration(_):
    """The simulated driver says it itself."""
    environment = clean_environment() | {"LD_LIBRARY_PATH": str(BUILD / "lib/ration/sim")}
    done = subprocess.run([sys.executable, "-c", ASKS], env=environment, capture_output=True, text=True, timeout=HANG, check=True)
    expect("lines", done.stderr.count("\n"), 1)
    expect_that(done.stderr, done.stderr.startswith("simcuda: NVIDIA's runtime (libcudart) does not work"))


def told_before(_):
    text = " ".join(ration("run", "--help").stdout.split())
    expect_that("the option's text", "programs that use NVIDIA's runtime (libcudart) need a real one" in text)
    expect_that("README.md", "libcudart" in (SOURCE / "README.md").read_text())


def nvidias_own(path):
    def case(_):
        expect("its version alone", said(RUNTIME.format(path=path, work=False)), [])
        expect("lines", len(said(RUNTIME.format(path=path, work=True), status=1)), 1)
    return case


cases = {"once": once, "several processes": several, "a run within the run": nested, "programs that work": works,
         "without ration run": without_ration, "told before": told_before}
made = subprocess.run([SOURCE / "tests/python_env.sh", BUILD], stdout=subprocess.PIPE, text=True, check=False)
if made.returncode == NO_INDEX:
    print("skipped: NVIDIA's own runtime, which is not installed, and no package index answers")
else:
    found = sorted(pathlib.Path(made.stdout.strip()).parents[1].glob("lib/python*/site-packages/nvidia/*/lib/libcudart.so.*"))
    cases["NVIDIA's own runtime"] = nvidias_own(str(found[0]))
main(cases)
