#!/usr/bin/env python3
"""`--stacks`: who called is in the log before it is needed, and `ration report` names it."""
import collections
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from harness import BUILD, HANG, MIB, PROGRAMS, SANITIZED, clean_environment, expect, expect_that, main, of_type, run

RATION = BUILD / "bin/ration"
CELLS = 40  # code objects of one name, each freed before the next
SIZE = {"SIMCUDA_DEVICES": "2GiB", "RATION_LIMIT": "1GiB"}


def report(log, *arguments, **environment):
    done = subprocess.run([RATION, "report", log, *arguments], env=clean_environment() | environment, capture_output=True,
                          text=True, timeout=HANG, check=False)
    expect(f"status, stderr {done.stderr!r}", done.returncode, 0)
    return done.stdout


class Stacks:
    """The stacks of a log, each resolved when it is used: what it needs must stand before."""

    def __init__(self, records):
        self.modules, self.frames, self.nodes, self.used = {}, {}, {}, []
        for record in records:
            kind = record["t"]
            if kind == "mod":
                self.modules[record["id"]] = record
            elif kind == "frame":
                expect_that(f"module of {record}", record["mod"] == 0 or record["mod"] in self.modules)
                self.frames[record["id"]] = record
            elif kind == "stack":
                expect_that(f"frame of {record}", record["frame"] in self.frames)
                expect_that(f"parent of {record}", record["parent"] == 0 or record["parent"] in self.nodes)
                self.nodes[record["id"]] = record
            elif kind in ("alloc", "oom"):
                expect_that(f"stack of {record}", record.get("stack") in self.nodes)
                self.used.append((record["req"], self.path(record["stack"])))

    def path(self, node):
        frames = []
        while node:
            frames.append(self.nodes[node]["frame"])
            node = self.nodes[node]["parent"]
        return tuple(frames)


def stacks_of(program, *arguments, folder, **settings):
    done = run(program, *arguments, folder=folder, RATION_STACKS="native", **SIZE, **settings)
    expect(f"status, stderr {done.err!r}", done.status, 0)
    return Stacks(done.logs["run.jsonl"]), pathlib.Path(folder) / "run.jsonl", done


def functions(leak):
    return [frame["function"] for frame in leak["frames"]]


def depths(folder):
    stacks, log, _ = stacks_of("callers", "depths", "40", folder=folder)
    expect("stacks", len({path for _, path in stacks.used}), 3)
    leaks = json.loads(report(log, "--json"))["leaks"]
    by_path = {tuple(functions(leak)[:1]) + (functions(leak).count("deeper"),): leak["count"] for leak in leaks}
    expect("blocks of each path", by_path, {("by_left", 41): 1, ("by_left", 0): 3, ("by_right", 0): 3})
    expect("sizes by path", sorted((size, len(path)) for size, path in stacks.used)[-3:], [(2 * MIB, len(stacks.used[-1][1]))] * 3)


def deepest(folder):
    """Of more calls than are kept the outermost are left out."""
    stacks, log, _ = stacks_of("callers", "depths", "1000", folder=folder)
    first = json.loads(report(log, "--json"))["leaks"]
    deep = [leak for leak in first if "deeper" in functions(leak)]
    expect("deep ones", len(deep), 1)
    expect_that(f"depth {len(deep[0]['frames'])}", 100 < len(deep[0]["frames"]) <= 128)
    expect("innermost", functions(deep[0])[:2], ["by_left", "deeper"])


def threads(folder):
    _, log, _ = stacks_of("callers", "threads", folder=folder)
    counts = collections.Counter()
    for leak in json.loads(report(log, "--json"))["leaks"]:
        counts[functions(leak)[0], leak["bytes"] // leak["count"]] += leak["count"]
    expect("blocks of each path", counts, {("by_left", 512): 8000, ("by_right", 1024): 8000})


def plugins(folder):
    """Code that was unloaded is not taken for what was loaded in its place."""
    _, log, done = stacks_of("callers", "plugins", PROGRAMS / "libstacks_plugin_one.so", PROGRAMS / "libstacks_plugin_two.so",
                             folder=folder)
    if not SANITIZED:
        expect("the plugins' places", done.out, "same place: 1\n")
    leaks = json.loads(report(log, "--json"))["leaks"]
    expect("innermost functions", sorted(functions(leak)[0] for leak in leaks), ["plugin_one", "plugin_two"])
    expect("libraries", sorted(leak["frames"][0]["library"] for leak in leaks), ["libstacks_plugin_one", "libstacks_plugin_two"])
    expect_that("by library", "libstacks_plugin_one" in report(log, "--by", "library"))


def refused(folder):
    _, log, _ = stacks_of("callers", "refused", folder=folder)
    expect_that("the refusal's caller", "called by by_right" in report(log))
    document = json.loads(report(log, "--json"))
    expect_that("its stack", document["logs"][0]["devices"][0]["refused_requests"][0]["stack"][0].startswith("by_right"))


def another_file(folder):
    """A file that is not the one that ran names nothing."""
    copy = pathlib.Path(folder) / "callers"
    shutil.copy(PROGRAMS / "callers", copy)
    done = run(str(copy), "refused", folder=folder, RATION_STACKS="native", **SIZE)
    expect("status", done.status, 0)
    expect_that("named", "called by by_right" in report(pathlib.Path(folder) / "run.jsonl"))
    shutil.copy(PROGRAMS / "holds", copy)
    expect_that("an offset", "called by callers+0x" in report(pathlib.Path(folder) / "run.jsonl"))


def without_elfutils(folder):
    """The table of symbols names functions, without their lines."""
    _, log, _ = stacks_of("callers", "refused", folder=folder)
    (pathlib.Path(folder) / "libdw.so.1").write_text("not a library")
    text = report(log, LD_LIBRARY_PATH=folder)
    expect_that(f"name without a line: {text}", "called by by_right\n" in text or "called by by_right, from main\n" in text)


def reloaded(folder):
    """Two libraries take turns at one address, under stacks that are known by then."""
    one, two = PROGRAMS / "libstacks_plugin_one.so", PROGRAMS / "libstacks_plugin_two.so"
    stacks, log, _ = stacks_of("callers", "plugins", *[one, two] * 5, folder=folder)
    places = collections.Counter((frame["mod"], frame["off"]) for frame in stacks.frames.values())
    expect("places that were written again", [place for place, count in places.items() if count > 1], [])
    expect("stacks", len(stacks.nodes), len({(node["parent"], node["frame"]) for node in stacks.nodes.values()}))
    expect("files", len(stacks.modules), len({module["path"] for module in stacks.modules.values()}))
    counts = collections.Counter()
    for leak in json.loads(report(log, "--json"))["leaks"]:
        counts[functions(leak)[0]] += leak["count"]
    expect("blocks of each", dict(counts), {"plugin_one": 5, "plugin_two": 5})
    expect("leaks: the first is loaded at a place of its own", len(json.loads(report(log, "--json"))["leaks"]), 3)


def off(folder):
    done = run("callers", "refused", folder=folder, **SIZE)
    expect("status", done.status, 0)
    expect("records of stacks", [record for record in done.logs["run.jsonl"] if record["t"] in ("mod", "frame", "stack")], [])
    expect("keys", [record for record in of_type(done.logs["run.jsonl"], "oom") if "stack" in record], [])


def in_a_child(folder):
    """A forked child's log is its own, and so are its numbers."""
    done = run("processes", "fork", folder=folder, RATION_STACKS="native", SIMCUDA_DEVICES="16GiB", RATION_LIMIT="1GiB")
    expect("status", done.status, 0)
    for records in done.logs.values():
        Stacks(records)


def python_named(interpreter):
    def case(folder):
        environment = {"RATION_STACKS": "python", "RATION_LOG": str(pathlib.Path(folder) / "run.jsonl")}
        done = subprocess.run([RATION, "run", "--sim", "2GiB", "--limit", "1GiB", "--", interpreter,
                               pathlib.Path(__file__).parent / "programs/python_stacks.py"],
                              env=clean_environment() | environment | {"RATION_STATE_DIR": folder + "/state"},
                              capture_output=True, text=True, timeout=HANG, check=False)
        expect(f"status, stderr {done.stderr!r}", done.returncode, 0)
        leaks = json.loads(report(pathlib.Path(folder) / "run.jsonl", "--json"))["leaks"]
        paths = collections.Counter()
        for leak in leaks:
            mine = [(f["function"].split(".")[-1], f["line"]) for f in leak["frames"] if f["library"] == "the program"]
            paths[tuple(mine), leak["bytes"]] += leak["count"]
        alloc = ("größe", 11)
        expect("paths", dict(paths), {
            ((alloc, ("keep", 17), ("work", 26), ("<module>", 31)), 1 * MIB): 1,
            ((alloc, ("keep", 18), ("work", 26), ("<module>", 31)), 2 * MIB): 1,
            ((alloc, ("keep", 17), ("work", 26)), 1 * MIB): 1,
            ((alloc, ("keep", 18), ("work", 26)), 2 * MIB): 1,
            ((alloc, ("<module>", 1), ("<module>", 38)), 4 * MIB): CELLS})
        cells = collections.Counter(f["file"] for leak in leaks for f in leak["frames"] if f["file"].startswith("<cell"))
        expect("files of code made at run time", cells, {f"<cell {number}>": 1 for number in range(CELLS)})
        expect_that("the thread's start", any("_bootstrap" in f["function"] for leak in leaks for f in leak["frames"]))
        text = report(pathlib.Path(folder) / "run.jsonl", "--leaks")
        expect_that(f"first row of {text}", "größe (python_stacks.py:11)" in text.splitlines()[3])
    return case


def interpreters():
    """Those of this machine, one of each version."""
    found = {}
    for path in [sys.executable, *sorted(glob.glob("/usr/bin/python3.*")),
                 *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))]:
        if path.endswith("-config"):
            continue
        asked = subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True, text=True,
                               check=False)
        version = asked.stdout.strip()
        if asked.returncode == 0 and 9 <= int(version.split(".")[1]) <= 14:
            found.setdefault(version, path)
    return found


def not_python(folder):
    """Asked for Python's calls, a program without it has native ones."""
    _, log, _ = stacks_of("callers", "refused", folder=folder)
    native = report(log)
    with tempfile.TemporaryDirectory() as other:
        done = run("callers", "refused", folder=other, RATION_STACKS="python", **SIZE)
        expect("status", done.status, 0)
        expect("the refusal's caller", "called by by_right" in report(pathlib.Path(other) / "run.jsonl"), "called by by_right" in native)


cases = {"depths": depths, "deepest": deepest, "threads": threads, "plugins": plugins, "refused": refused, "reloaded": reloaded,
         "another_file": another_file, "without_elfutils": without_elfutils, "off": off, "in_a_child": in_a_child,
         "not_python": not_python}
if not SANITIZED:  # an interpreter that is not instrumented cannot load a library that is
    cases |= {f"python {version}": python_named(path) for version, path in interpreters().items()}
main(cases)
