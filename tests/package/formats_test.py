#!/usr/bin/env python3
"""The wheel and the Debian package of an installed tree, by the packers themselves: formats_test.py SOURCE BUILD

The tree is this build's, which needs this machine's libraries; what scripts/package.sh builds is tested by the long tests.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

SOURCE, BUILD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
PACKERS = SOURCE / "scripts/package"
VERSION = "1.2.3"
EXAMPLE = ("import ctypes; cuda = ctypes.CDLL('libcuda.so.1'); free, total = ctypes.c_size_t(), ctypes.c_size_t(); "
           "context = ctypes.c_void_p(); cuda.cuInit(0); cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0); "
           "cuda.cuCtxSetCurrent(context); cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)); print(total.value)")


class Failed(Exception):
    pass


def expect(what, seen, wanted):
    if seen != wanted:
        raise Failed(f"{what}: {seen!r}, expected {wanted!r}")


def run(*words, status=0, **environment):
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("RATION_", "SIMCUDA_", "LD_", "CUDA_"))}
    done = subprocess.run(list(map(str, words)), env=inherited | environment, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=120)
    expect(f"{words[:4]}: status, {done.stderr[-2000:]!r}", done.returncode, status)
    return done.stdout


def packed(packer, *words):
    """Twice, for two times of the files: the same bytes."""
    contents = []
    for _ in range(2):
        path = pathlib.Path(run(PACKERS / packer, *words, SOURCE_DATE_EPOCH="1700000000").strip())
        contents.append(path.read_bytes())
        for each in TREE.rglob("*"):
            os.utime(each, follow_symlinks=False)
    expect(f"{packer}: the same bytes", contents[0] == contents[1], True)
    return path


def limited(ration):
    """The size of the device that a program sees."""
    return run(ration, "run", "--sim", "8GiB", "--limit", "25%", "--", "python3", "-c", EXAMPLE)


def example(programs):
    """The front page's first command: the size of the device that the packed program sees."""
    printed = run(programs / "ration", "run", "--sim", "8GiB", "--limit", "25%", "--", programs / "ration-example", "a")
    return printed.splitlines()[-1].split(" peak=")[0]


def wheel(folder):
    path = packed("wheel.py", TREE, SOURCE / "shim/python/ration_gpu", VERSION, "linux_x86_64", folder)
    expect("its name", path.name, f"ration_gpu-{VERSION}-py3-none-linux_x86_64.whl")
    with zipfile.ZipFile(path) as content:
        expect("whole", content.testzip(), None)
        record = content.read(f"ration_gpu-{VERSION}.dist-info/RECORD").decode().splitlines()
        expect("in RECORD", sorted(line.split(",")[0] for line in record), sorted(content.namelist()))
        modules = {name for name in content.namelist() if name.startswith("ration_gpu/")}
        expect("modules", {f"ration_gpu/{name}" for name in ("__init__.py", "dask.py", "pytest.py", "py.typed", "ray.py")} - modules, set())
    environment = folder / "venv"
    run(sys.executable, "-m", "venv", environment)
    run(environment / "bin/pip", "install", "--no-index", "--disable-pip-version-check", path)
    expect("limited", limited(environment / "bin/ration"), f"{2 << 30}\n")
    expect("the example", example(environment / "bin"), f"a total={2 << 30}")
    code = "import ration_gpu; print(ration_gpu.command(), ration_gpu.library())"
    expect("found", run(environment / "bin/python", "-c", code),
           f"{environment.resolve()}/bin/ration {environment.resolve()}/lib/libration.so\n")
    code = ("import importlib.metadata, sys, ration_gpu; "
            "print([each.value for each in importlib.metadata.distribution('ration-gpu').entry_points if each.group == 'pytest11'], "
            "[name for name in ('dask', 'pytest', 'ray') if name in sys.modules])")
    expect("pytest's plug-in, and engines that the package alone imports", run(environment / "bin/python", "-c", code),
           "['ration_gpu.pytest'] []\n")


def deb(folder):
    path = packed("deb.py", TREE, VERSION, "amd64", folder / "deb", folder)
    expect("its name", path.name, f"ration_{VERSION}_amd64.deb")
    root = folder / "root"
    run("dpkg-deb", "-x", path, root)
    run("dpkg-deb", "-e", path, root / "DEBIAN")
    run("sh", "-c", f"cd {root} && md5sum --strict --quiet -c DEBIAN/md5sums")
    expect("scripts of the package, and settings", sorted(each.name for each in (root / "DEBIAN").iterdir()), ["control", "md5sums"])
    expect("libraries that every program finds", [str(each) for each in (root / "usr/lib").iterdir()], [str(root / "usr/lib/ration")])
    expect("limited", limited(root / "usr/bin/ration"), f"{2 << 30}\n")
    expect("the example", example(root / "usr/bin"), f"a total={2 << 30}")
    expect("preloaded", run(root / "usr/bin/ration", "run", "--sim", "1GiB", "--", "sh", "-c", "echo $LD_PRELOAD"),
           f"{root}/usr/lib/ration/libration.so\n")


def incomplete(folder):
    """A package of which a library is missing says which."""
    (folder / "bin").mkdir()
    (folder / "bin/ration").write_bytes((TREE / "bin/ration").read_bytes())
    (folder / "bin/ration").chmod(0o755)
    done = subprocess.run([folder / "bin/ration", "run", "--", "true"], capture_output=True, text=True, check=False)
    expect("status", done.returncode, 125)
    expect("says which", f"{folder}/lib/libration.so is missing" in done.stderr, True)


failed = 0
with tempfile.TemporaryDirectory() as top:
    TREE = pathlib.Path(top).resolve() / "tree"
    run("cmake", "--install", BUILD, "--prefix", TREE)
    documents = TREE / "share/doc/ration"
    for name in ("LICENSE", "README.md", "CHANGELOG.md", "shim/KNOWN_GAPS.md"):
        (documents / pathlib.Path(name).name).write_bytes((SOURCE / name).read_bytes())
    for case in (wheel, deb, incomplete):
        inner = pathlib.Path(top).resolve() / case.__name__
        inner.mkdir()
        try:
            case(inner)
            print(f"ok      {case.__name__}")
        except Failed as failure:
            failed += 1
            print(f"FAILED  {case.__name__}: {failure}")
sys.exit(1 if failed else 0)
