#!/usr/bin/env python3
"""The wheel, installed in each way that pip has, and by pipx: pip_test.py BUILD

Wherever it lies, the command finds its library, Python finds both, and pages and completions lie where their readers look.
"""
import pathlib
import shutil
import sys
import tempfile

import tree
from tree import expect, installed, limited, packed, run

BUILD = pathlib.Path(sys.argv[1]).resolve()
PIP = ("install", "--quiet", "--no-index", "--disable-pip-version-check")
PAGES = ("share/man/man1/ration.1", "share/man/man1/ration-run.1", "share/bash-completion/completions/ration",
         "share/zsh/site-functions/_ration", "share/fish/vendor_completions.d/ration.fish")
FOUND = ("import os, subprocess, sys, ration_gpu; print(ration_gpu.command(), ration_gpu.library(), sep='\\n', flush=True); "
         "subprocess.run([sys.executable, '-c', os.environ['PROGRAM']], env=ration_gpu.limit_environment('25%', sim='8GiB'), check=True)")


def works(prefix, python, **environment):
    """The command; Python, as the environment has it; and what else there is."""
    ration = prefix / "bin/ration"
    expect("limited", limited(ration, **environment), f"{2 << 30}\n")
    expect("in Python", run(python, "-c", FOUND, PROGRAM=tree.EXAMPLE, **environment).splitlines(),
           [str(ration), str(prefix / "libexec/ration/libration.so"), str(2 << 30)])
    expect("pages and completions that are missing", [page for page in PAGES if not (prefix / page).is_file()], [])


def reads(prefix, **environment):
    """man looks beside the programs on PATH by itself."""
    if shutil.which("mandb"):  # other readers of pages want to be told
        page = run("man", "-w", "ration-run", PATH=f"{prefix}/bin:/usr/bin:/bin", MANPATH="", **environment)
        expect("man", pathlib.Path(page.strip()), (prefix / "share/man/man1/ration-run.1").resolve())


def completes(prefix, **environment):
    """bash reads the completion of a program when it is first asked for one."""
    loader = pathlib.Path("/usr/share/bash-completion/bash_completion")
    if loader.is_file():
        asked = f". {loader}; _completion_loader ration; complete -p ration"
        path = f"{prefix}/bin:/usr/bin:/bin"
        expect("bash", run("bash", "-c", asked, PATH=path, **environment), "complete -F _ration ration\n")


def environment_of(folder, *options):
    """A virtual environment: distributions' own Python may have no pip."""
    run(sys.executable, "-m", "venv", *options, folder / "venv")
    return folder / "venv"


def virtual(folder):
    environment = environment_of(folder)
    before = set(environment.rglob("*"))
    run(environment / "bin/pip", *PIP, WHEEL)
    works(environment, environment / "bin/python")
    reads(environment)
    completes(environment, XDG_DATA_DIRS=f"{environment}/share:/usr/share")
    run(environment / "bin/pip", "uninstall", "--quiet", "--yes", "ration-gpu")
    left = set(environment.rglob("*")) - before
    expect("left", [str(each) for each in left if each.is_file() and each.suffix != ".pyc"], [])


def target(folder):
    """Into a folder that is no environment. pip records other paths there than those where the files are."""
    place = folder / "target"
    pip = environment_of(folder) / "bin/pip"
    for upgrade in ([], ["--upgrade"]):
        run(pip, *PIP, "--target", place, *upgrade, WHEEL)
        works(place, sys.executable, PYTHONPATH=str(place))
        reads(place)


def user(folder):
    """Into a home."""
    base = folder / "home/.local"
    environment = {"HOME": str(base.parent), "PYTHONUSERBASE": str(base)}
    python = environment_of(folder, "--system-site-packages") / "bin/python"
    run(python, "-m", "pip", *PIP, "--user", WHEEL, **environment)
    works(base, python, **environment)
    reads(base, **environment)
    completes(base, **environment)


def pipx(folder):
    """The programs are links into an environment of its own, and pages, too."""
    interpreter = tree.python(BUILD)
    environment = {"HOME": str(folder), "PIPX_HOME": str(folder / "pipx"), "PIPX_BIN_DIR": str(folder / "bin"),
                   "PIPX_MAN_DIR": str(folder / "share/man"), "USE_EMOJI": "0"}
    run(interpreter, "-m", "pipx", "install", "--quiet", WHEEL, **environment)
    expect("links", [(folder / each).is_symlink() for each in ("bin/ration", "share/man/man1/ration.1")], [True, True])
    expect("limited", limited(folder / "bin/ration", **environment), f"{2 << 30}\n")
    own = folder / "pipx/venvs/ration-gpu"
    works(own, own / "bin/python", **environment)
    reads(folder, **environment)
    run(interpreter, "-m", "pipx", "uninstall", "ration-gpu", **environment)
    expect("left", [str(each) for each in folder.rglob("ration*") if each.is_file()], [])


with tempfile.TemporaryDirectory() as top:
    prefix = pathlib.Path(top).resolve() / "tree"
    installed(BUILD, prefix)
    WHEEL = packed("wheel.py", prefix, tree.SOURCE / "shim/python/ration_gpu", tree.VERSION, "linux_x86_64", top)
    tree.main(virtual, target, user, pipx)
