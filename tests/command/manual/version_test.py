#!/usr/bin/env python3
"""What `ration --version` says, and that the commit in it is that of the checkout at each build."""
import os
import pathlib
import re
import shutil
import subprocess

from described import printed
from harness import BUILD, expect, expect_that, main

ROOT = pathlib.Path(__file__).resolve().parents[3]
CACHE = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M))
VERSION = re.search(r"^project\(ration VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M).group(1)


def version(_):
    text = printed("--version")
    commit = re.escape(CACHE["RATION_COMMIT"]) if CACHE["RATION_COMMIT"] else "[0-9a-f]{12,40}(-dirty)?"
    said = re.fullmatch(rf"ration {re.escape(VERSION)} \((commit {commit}, )?(\w+), (\w+), (\w+) [\d.]+\)\n", text)
    expect_that(f"the form of {text!r}", said)
    expect("build, machine", said.group(3, 4), (CACHE["CMAKE_BUILD_TYPE"], os.uname().machine))


def git(folder, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", folder, *arguments], capture_output=True,
                          text=True, check=True, env=environment | {"GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(folder)})
    return done.stdout.strip()


def found(source, out, **settings):
    """What a build would put into the command."""
    given = [f"-D{name}={value}" for name, value in settings.items()]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run([CACHE["CMAKE_COMMAND"], f"-DSOURCE={source}", f"-DOUT={out}", *given, "-P", ROOT / "shim/cli/commit.cmake"],
                   check=True, env=environment)
    return out.read_text().strip()


def checkout(folder):
    source, out = pathlib.Path(folder) / "a checkout", pathlib.Path(folder) / "commit.inc"
    source.mkdir()
    git(source, "init", "-q")
    expect("without a commit", found(source, out), '""')
    (source / "file").write_text("1")
    git(source, "add", "file")
    for text in ("1", "2"):
        (source / "file").write_text(text)
        git(source, "commit", "-q", "-a", "-m", text)
        commit = git(source, "rev-parse", "--short=12", "HEAD")
        expect("after a commit", found(source, out), f'"commit {commit}, "')
        written = out.stat().st_mtime_ns
        found(source, out)
        expect("nothing is written where nothing changed", out.stat().st_mtime_ns, written)
    (source / "beside").write_text("git does not know it")
    expect("with an untracked file", found(source, out), f'"commit {commit}, "')
    (source / "file").write_text("changed")
    expect("with a changed file", found(source, out), f'"commit {commit}-dirty, "')
    expect("with a commit that a package states", found(source, out, COMMIT="1.2-3"), '"commit 1.2-3, "')
    shutil.copytree(source, source / "unpacked", ignore=shutil.ignore_patterns(".git", "unpacked"))
    expect("inside another project's checkout", found(source / "unpacked", out), '""')


def no_checkout(folder):
    out = pathlib.Path(folder) / "commit.inc"
    expect("outside of any repository", found(folder, out), '""')
    expect("without git", found(ROOT, out, git="OFF"), '""')
    expect("with a git that fails", found(ROOT, out, git=shutil.which("false")), '""')
    expect("without git, stated", found(ROOT, out, git="OFF", COMMIT="abc"), '"commit abc, "')


main({"--version": version, "in a checkout": checkout, "without a checkout": no_checkout})
