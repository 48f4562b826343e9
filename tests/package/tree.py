"""What the tests of packages share: an installed tree of a build, what they expect, and commands without this process's settings."""
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PACKERS = SOURCE / "scripts/package"
VERSION = "1.2.3"
EXAMPLE = ("import ctypes; cuda = ctypes.CDLL('libcuda.so.1'); free, total = ctypes.c_size_t(), ctypes.c_size_t(); "
           "context = ctypes.c_void_p(); cuda.cuInit(0); cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0); "
           "cuda.cuCtxSetCurrent(context); cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)); print(total.value)")


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failed(f"{what}: {seen!r}, expected {wanted!r}")


def run(*words, status=0, **environment):
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("RATION_", "SIMCUDA_", "LD_", "CUDA_"))}
    done = subprocess.run(list(map(str, words)), env=inherited | environment, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=240)
    expect(f"{words[:4]}: status, {done.stderr[-2000:]!r}", done.returncode, status)
    return done.stdout


def limited(ration, **environment):
    """The size of the device that a program sees."""
    return run(ration, "run", "--sim", "8GiB", "--limit", "25%", "--", "python3", "-c", EXAMPLE, **environment)


def example(programs):
    """The front page's first command: the size of the device that the packed program sees."""
    printed = run(programs / "ration", "run", "--sim", "8GiB", "--limit", "25%", "--", programs / "ration-example", "a")
    return printed.splitlines()[-1].split(" peak=")[0]


def installed(build, prefix):
    """The build as scripts/package.sh hands it to the packers."""
    run("cmake", "--install", build, "--prefix", prefix)


def packed(packer, *words):
    """The path of the package that the packer writes."""
    return pathlib.Path(run(PACKERS / packer, *words, SOURCE_DATE_EPOCH="1700000000").strip())


def python(build):
    """The interpreter with the packages of requirements.txt."""
    here = pathlib.Path(__file__).resolve().parent
    made = subprocess.run([here.parent / "python_env.sh", build, here / "requirements.txt", "packages"], stdout=subprocess.PIPE, text=True,
                          check=False)
    if made.returncode == 3:
        raise Skipped("no package index answers")
    expect("python_env.sh", made.returncode, 0)
    return pathlib.Path(made.stdout.strip())


def main(*cases):
    """Runs each in a scratch folder. Exit status 77 where one was skipped and none failed."""
    failed, skipped = 0, 0
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(pathlib.Path(folder).resolve())
                print(f"ok      {case.__name__}")
            except Skipped as why:
                skipped += 1
                print(f"skipped: {case.__name__}: {why}")
            except Failed as failure:
                failed += 1
                print(f"FAILED  {case.__name__}: {failure}")
    sys.exit(1 if failed else 77 if skipped else 0)
