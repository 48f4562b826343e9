#!/usr/bin/env python3
"""The library switched off, in unusual folders, without its core, and with a core of another build."""
import os
import pathlib
import re
import shutil
import subprocess

from harness import BUILD, LIBRARIES, LIBRARY, PROGRAMS, SANITIZED, command_environment, expect, expect_that, main, run

LIMITED = {"RATION_LIMIT": "1GiB", "SIMCUDA_DEVICES": "4GiB"}
PLAIN = run("probe", preload=None, SIMCUDA_DEVICES="4GiB")
CORE = "libration-core.so"


def preload_from(folder, core=None):
    """LD_PRELOAD's value for a copy of the library in `folder`, alone or with a copy of `core`."""
    shutil.copy(LIBRARY, folder)
    if core:
        shutil.copy(core, pathlib.Path(folder) / CORE)
    return LIBRARIES.replace(str(LIBRARY), f"{folder}/{LIBRARY.name}")


def closed(folder, preload, *said):
    """Every allocating call returns 2 however it was found, every other call reaches the driver, and one line says why."""
    done = run("probe", preload=preload, **LIMITED)
    expect("stdout", done.out, f"freed=0 reported=0 total={4 << 30} found=0\nby_pointer=2\nblocks=0 code=2 null=1\n"
           f"core={int('another build' in said[0])}\n")
    expect("lines on stderr", len(done.err.splitlines()), 1)
    for words in said:
        expect_that(f"{words!r} is not in {done.err!r}", words in done.err)
    inert = run("probe", preload=preload, RATION_DISABLE="1", **LIMITED)
    expect("with RATION_DISABLE=1", (inert.status, inert.out, inert.err), (0, PLAIN.out, ""))


def core_missing(folder):
    closed(folder, preload_from(folder), "cannot load its core", f"{folder}/{CORE}", "RATION_DISABLE=1")


def core_garbage(folder):
    garbage = pathlib.Path(folder) / "garbage"
    garbage.write_bytes(b"this is no ELF file\n" * 100)
    closed(folder, preload_from(folder, garbage), "cannot load its core", CORE)


def core_truncated(folder):
    part = pathlib.Path(folder) / "part"
    part.write_bytes((BUILD / "lib" / CORE).read_bytes()[:4096])
    closed(folder, preload_from(folder, part), "cannot load its core", CORE)


def core_of_another_build(folder):
    closed(folder, preload_from(folder, PROGRAMS / "libother_core.so"), "another build", CORE)


def core_is_no_core(folder):
    preload = preload_from(folder, PROGRAMS / "libstub.so")
    done = run("probe", preload=preload, **LIMITED)
    expect_that(done.out, "blocks=0 code=2 null=1" in done.out)
    expect_that(done.err, "cannot start its core" in done.err and len(done.err.splitlines()) == 1)


def closed_for_every_thread(folder):
    done = run("race", "linked", preload=preload_from(folder), **LIMITED)
    expect("stdout", done.out, "blocks=0 code=2 null=1\n")
    expect("lines on stderr", len(done.err.splitlines()), 1)


def closed_to_graphs(folder):
    """A graph's memory comes with its launch: without a core there is none to launch."""
    for instantiate in ("cuGraphInstantiate", "cuGraphInstantiate_v2", "cuGraphInstantiateWithFlags",
                        "cuGraphInstantiateWithParams", "cuGraphInstantiateWithParams_ptsz"):
        done = run("graph_ways", "cuGraphAddMemAllocNode", instantiate, "cuGraphLaunch", preload=preload_from(folder),
                   **LIMITED)
        expect(instantiate, done.out, "instantiated 2\ngraphs hold 0\n")


def inert(folder):
    done = run("probe", folder=folder, RATION_DISABLE="1", **LIMITED)
    expect("with RATION_DISABLE=1", (done.status, done.out, done.err, done.logs), (0, PLAIN.out, "", {}))


def inert_before_main(folder):
    plain = run("early_and_late", preload=None, FILL_AT="preinit")
    done = run("early_and_late", folder=folder, RATION_DISABLE="1", FILL_AT="preinit", **LIMITED)
    expect("stdout, logs", (done.out, done.logs), (plain.out, {}))


def second_copy(folder):
    """The first copy limits, and the second does nothing: a limit in percent holds once."""
    settings = {"RATION_LIMIT": "50%", "SIMCUDA_DEVICES": "4GiB"}
    copy = preload_from(folder, BUILD / "lib" / CORE).rpartition(":")[2]
    once = run("probe", preload=LIBRARIES, **settings)
    renamed = pathlib.Path(folder) / "other.so"
    renamed.write_bytes(LIBRARY.read_bytes())
    for second in (copy, renamed):
        twice = run("probe", preload=f"{LIBRARIES}:{second}", **settings)
        expect(f"with {second}", (twice.out, twice.err), (once.out, once.err))


def not_inert(folder):
    for value in ("0", ""):
        done = run("probe", RATION_DISABLE=value, **LIMITED)
        expect_that(f"RATION_DISABLE={value}: {done.out} {done.err}", "blocks=10 code=2 null=1\ncore=1" in done.out)
        expect("stderr", done.err, "")


def relative_path(folder):
    """The loader keeps the relative path; the program changes its folder before its first CUDA call."""
    preload_from(folder, BUILD / "lib" / CORE)
    elsewhere = pathlib.Path(folder) / "elsewhere"
    elsewhere.mkdir()
    preload = LIBRARIES.replace(str(LIBRARY), f"./{LIBRARY.name}")
    done = run("probe", str(elsewhere), folder=folder, preload=preload, **LIMITED)
    expect_that(f"{done.out} {done.err}", "blocks=10 code=2 null=1\ncore=1" in done.out)


def odd_folder(folder):
    odd = pathlib.Path(folder) / "a b's ü [x]"
    odd.mkdir()
    # LD_PRELOAD splits at blanks, so the loader uses a link. The core is found by the real path of the library.
    link = pathlib.Path(folder) / "link"
    os.symlink(odd, link)
    preload_from(str(odd), BUILD / "lib" / CORE)
    done = run("probe", preload=LIBRARIES.replace(str(LIBRARY), f"{link}/{LIBRARY.name}"), **LIMITED)
    expect_that(f"{done.out} {done.err}", "blocks=10 code=2 null=1\ncore=1" in done.out)


def installed(folder):
    """What `cmake --install` leaves besides libraries: the command runs, and what shells, man and editors look for is there."""
    prefix, root = pathlib.Path(folder) / "prefix", pathlib.Path(__file__).resolve().parents[2]
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.M))
    done = subprocess.run([cache["CMAKE_COMMAND"], "--install", BUILD, "--prefix", prefix], capture_output=True, text=True, check=False)
    expect("installed", (done.returncode, done.stderr), (0, ""))
    command = [prefix / "bin/ration", "--version"]
    expect_that("the command runs", subprocess.run(command, env=command_environment(), capture_output=True, check=True).stdout)
    example = subprocess.run([prefix / "bin/ration-example", "--help"], capture_output=True, text=True, check=True)
    expect_that(f"the example: {example.stdout}", example.stdout.startswith("Usage: ration-example [NAME]\n"))
    pages = [f"man/man1/{page.name}" for page in (BUILD / "share/man/man1").iterdir()]
    expect_that("pages", len(pages) > 10 and "man/man1/ration-run.1" in pages)
    for name in [*pages, "bash-completion/completions/ration", "fish/vendor_completions.d/ration.fish"]:
        expect(name, (prefix / "share" / name).read_bytes(), (BUILD / "share" / name).read_bytes())
    expect("_ration", (prefix / cache["RATION_ZSH_COMPLETIONS"] / "_ration").read_bytes(), (BUILD / "share/zsh/site-functions/_ration").read_bytes())
    for name, place in (("config/schema.json", "ration"), ("shim/events/log.schema.json", "ration"), ("shim/cli/verbs.schema.json", "ration"),
                        ("LICENSE", "doc/ration")):
        there = prefix / "share" / place
        expect(name, (there if there.is_file() else there / pathlib.Path(name).name).read_bytes(), (root / name).read_bytes())
    for name in ("README.md", "CHANGELOG.md", "KNOWN_GAPS.md", "JSON.md", "LOG.md"):
        expect_that(name, (prefix / "share/doc/ration" / name).read_text().startswith("# "))
    slurm = (prefix / "share/ration/slurm/README.md").read_text()
    expect("links that lead out of the installation", re.findall(r"\]\(\.\./[^)]*", slurm), [])
    if (BUILD / "lib/ration/slurm/spank_ration.so").exists():  # Slurm's headers are here
        # as a site builds it after an upgrade of Slurm: examples/slurm/README.md
        subprocess.run(["gcc", "-shared", "-fPIC", f"-I{cache['RATION_SLURM_HEADERS']}", "-o", "spank_ration.so", "spank_ration.c"],
                       cwd=prefix / "share/ration/slurm", check=True)


CASES = {
    "what is installed": installed,
    "no core": core_missing,
    "a core of garbage": core_garbage,
    "half a core": core_truncated,
    "a core of another build": core_of_another_build,
    "a library that is no core": core_is_no_core,
    "no core, 64 threads": closed_for_every_thread,
    "no core, graphs": closed_to_graphs,
    "RATION_DISABLE=1": inert,
    "RATION_DISABLE=1 before main": inert_before_main,
    "RATION_DISABLE other than 1": not_inert,
    "a second copy": second_copy,
    "a relative LD_PRELOAD and a change of folder": relative_path,
    "a folder with a difficult name": odd_folder,
}
if SANITIZED:  # a stub without the same instrumentation cannot be loaded there
    del CASES["a library that is no core"]
main(CASES)
