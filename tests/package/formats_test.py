#!/usr/bin/env python3
"""The wheel and the Debian package of an installed tree, by the packers themselves: formats_test.py BUILD

The tree is this build's, which needs this machine's libraries; what scripts/package.sh builds is tested by the long tests.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

from tree import SOURCE, VERSION, example, expect, installed, limited, main, packed, run

BUILD = pathlib.Path(sys.argv[1])


def twice(packer, *words):
    """Its path. For two times of the files: the same bytes."""
    contents = []
    for _ in range(2):
        path = packed(packer, *words)
        contents.append(path.read_bytes())
        for each in TREE.rglob("*"):
            os.utime(each, follow_symlinks=False)
    expect(f"{packer}: the same bytes", contents[0] == contents[1], True)
    return path


def wheel(folder):
    path = twice("wheel.py", TREE, SOURCE / "shim/python/ration_gpu", VERSION, "linux_x86_64", folder)
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
           f"{environment.resolve()}/bin/ration {environment.resolve()}/libexec/ration/libration.so\n")
    code = ("import importlib.metadata, sys, ration_gpu; "
            "print([each.value for each in importlib.metadata.distribution('ration-gpu').entry_points if each.group == 'pytest11'], "
            "[name for name in ('dask', 'pytest', 'ray') if name in sys.modules])")
    expect("pytest's plug-in, and engines that the package alone imports", run(environment / "bin/python", "-c", code),
           "['ration_gpu.pytest'] []\n")


def deb(folder):
    path = twice("deb.py", TREE, VERSION, "amd64", folder / "deb", folder)
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


def documents(_):
    """Each link in the installed documents leads to something that is installed."""
    folder = TREE / "share/doc/ration"
    links = [(each.name, link) for each in folder.glob("*.md")
             for link in re.findall(r'\]\(([^()\s#]+)[^()\s]*\)|\bsrc(?:set)?="([^"]+)"', each.read_text(encoding="utf-8"))]
    links = [(name, link or picture) for name, (link, picture) in links]
    expect("dead links", [link for link in links if not re.match(r"[a-z]+:", link[1]) and not (folder / link[1]).exists()], [])
    expect("links to what is installed", {"KNOWN_GAPS.md", "LOG.md"} <= {link for _, link in links}, True)


def incomplete(folder):
    """A package of which a library is missing says which."""
    (folder / "bin").mkdir()
    (folder / "bin/ration").write_bytes((TREE / "bin/ration").read_bytes())
    (folder / "bin/ration").chmod(0o755)
    done = subprocess.run([folder / "bin/ration", "run", "--", "true"], capture_output=True, text=True, check=False)
    expect("status", done.returncode, 125)
    expect("says which", f"{folder}/lib/libration.so is missing" in done.stderr, True)


with tempfile.TemporaryDirectory() as top:
    TREE = pathlib.Path(top).resolve() / "tree"
    installed(BUILD, TREE)
    main(wheel, deb, documents, incomplete)
