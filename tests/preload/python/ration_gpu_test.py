#!/usr/bin/env python3
"""The Python package ration_gpu, over this build: ration_gpu_test.py SOURCE"""
import json
import os
import pathlib
import subprocess
import sys
import warnings

SOURCE = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(SOURCE / "tests/preload"), str(SOURCE / "shim/python")]

import ration_gpu  # noqa: E402
from ration_gpu import _limits, _log  # noqa: E402
from harness import BUILD, GIB, HANG, LIBRARY, PROGRAMS, command_environment, expect, expect_that, main  # noqa: E402

SIM = "2x8GiB"


def environment(folder):
    """Without this process's settings, and with this build's command."""
    return command_environment() | {"PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}", "SIMCUDA_MACHINE": f"{folder}/machine"}


def raised(kind, *words, **settings):
    try:
        ration_gpu.limit_environment(**settings)
    except kind as error:
        for word in words:
            expect_that(f"{word!r} in {error}", word in str(error))
    else:
        expect_that(f"{settings} raises", False)


def where(_):
    expect("command, library", (ration_gpu.command(), ration_gpu.library()), (BUILD.resolve() / "bin/ration", LIBRARY.resolve()))
    path = os.environ.pop("PATH")
    try:
        for function in (ration_gpu.command, ration_gpu.library, ration_gpu.usage, ration_gpu.limit_environment):
            try:
                function()
                expect_that(f"{function.__name__} without a command", False)
            except ration_gpu.RationError as error:
                expect_that(str(error), "no command `ration`" in str(error))
    finally:
        os.environ["PATH"] = path


def limited(folder):
    given = environment(folder)
    before = dict(given)
    for limit, seen in (("25%", 2 * GIB), (GIB, GIB), (None, 8 * GIB)):
        made = ration_gpu.limit_environment(limit, environment=given, sim=SIM)
        done = subprocess.run([PROGRAMS / "probe"], env=made, capture_output=True, text=True, timeout=HANG, check=True)
        expect_that(f"{limit}: {done.stdout}", f" total={seen} " in done.stdout)
    expect("the mapping that was given", given, before)
    made = ration_gpu.limit_environment("1GiB", environment=given | {"RATION_DISABLE": "1"}, sim=SIM)
    done = subprocess.run([PROGRAMS / "probe"], env=made, capture_output=True, text=True, timeout=HANG, check=True)
    expect_that(f"in an inert process's environment: {done.stdout}", f" total={GIB} " in done.stdout)


def other_settings(folder):
    made = ration_gpu.limit_environment("1GiB", environment=environment(folder), group="a", show_limit=False, log=f"{folder}/x.jsonl",
                                        stacks=None)
    expect("variables", {key: made.get(key) for key in ("RATION_GROUP", "RATION_SHOW_LIMIT", "RATION_LOG", "RATION_STACKS")},
           {"RATION_GROUP": "a", "RATION_SHOW_LIMIT": "false", "RATION_LOG": f"{folder}/x.jsonl", "RATION_STACKS": None})


def preloads(folder):
    """Ours is first, once; others stay; a second call changes nothing."""
    given = environment(folder) | {"LD_PRELOAD": "libm.so.6 /elsewhere/libration.so", "LD_LIBRARY_PATH": "/a:/b"}
    made = ration_gpu.limit_environment("1GiB", environment=given, sim=SIM)
    expect("LD_PRELOAD", made["LD_PRELOAD"], f"{LIBRARY.resolve()}:libm.so.6")
    expect("LD_LIBRARY_PATH", made["LD_LIBRARY_PATH"], f"{BUILD.resolve() / 'lib/ration/sim'}:/a:/b")
    expect("again", ration_gpu.limit_environment("1GiB", environment=made, sim=SIM), made)


def mistakes(folder):
    given = environment(folder)
    raised(ValueError, "RATION_LIMIT=lots", "8GiB", limit="lots", environment=given)
    try:
        ration_gpu.limit_environment("lots", environment=given)
    except ValueError as error:
        expect_that(f"nothing starts: {error}", "75%" not in str(error))
    raised(ValueError, "unknown setting 'limt'", "limit", limt="1GiB", environment=given)
    raised(ValueError, "one of pool, async, direct", mode="fast", environment=given)
    raised(ValueError, "--sim many", sim="many", environment=given)


def without_group(folder):
    """What needs a group: refused, or told, as `ration run` does."""
    given = environment(folder)
    raised(ValueError, "a guarantee (guarantee=) needs a group that leaves it", 'write, for example: group="lab"', guarantee="2GiB",
           environment=given)
    for key, value, words in (("group_limit", "2GiB", "no group is given (RATION_GROUP); enforced for this process alone"),
                              ("limit", "7=1GiB", 'there is no device "7"')):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            made = ration_gpu.limit_environment(environment=given, sim=SIM, **{key: value})
        expect(key, made[f"RATION_{key.upper()}"], value)
        expect("warnings", [(told_of.category, told_of.filename) for told_of in told], [(UserWarning, __file__)])
        expect_that(str(told[0].message), words in str(told[0].message))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = ration_gpu.limit_environment("40%", group="lab", group_limit="50%", guarantee="2GiB", environment=given)
    expect("guarantee", made["RATION_GUARANTEE"], "2GiB")


def held(folder):
    os.environ.update(environment(folder))
    expect("before", ration_gpu.usage()["processes"], [])
    os.mkfifo(f"{folder}/end")
    writer = os.open(f"{folder}/end", os.O_RDWR)
    made = ration_gpu.limit_environment("1GiB", sim=SIM)
    with subprocess.Popen([PROGRAMS / "counted", f"{folder}/counts", "1", "1", "stay"], env=made, stdin=open(f"{folder}/end", "rb"),
                          stdout=subprocess.DEVNULL) as process:
        counts = pathlib.Path(folder) / "counts"
        while not counts.exists() or int.from_bytes(counts.read_bytes()[:8], "little") < 1:
            pass
        seen = ration_gpu.usage()["processes"]
        ration_gpu.set_limit(process.pid, "2GiB")
        changed = [row["limit"] for row in ration_gpu.usage()["processes"]]
        process.kill()
        process.wait()
    os.close(writer)
    expect("held", [(row["pid"], row["exe"], row["limit"]) for row in seen], [(process.pid, str(PROGRAMS / "counted"), GIB)])
    expect("changed", changed, [2 * GIB])
    for target, limit, words in ((process.pid, "1GiB", str(process.pid)), ("nobody", "1GiB", "nobody"), ("nobody", "lots", "lots")):
        try:
            ration_gpu.set_limit(target, limit)
            expect_that(f"{target}, {limit}", False)
        except ration_gpu.RationError as error:
            expect_that(f"{words!r} in {error}", words in str(error))


def parts(_):
    """Limits from parts of a device: less a margin, half at least, and a whole device is whole."""
    for part, margin, limit in ((0.25, 0.02, "0.230000"), (1, 0.02, "1.000000"), (0.03, 0.02, "0.015000"), (0.5, 0, "0.500000")):
        expect(f"{part}, {margin}", _limits.fraction(part, margin), limit)
    for part, margin in ((0, 0.02), (1.5, 0.02), (0.5, 1), (0.5, -0.1)):
        try:
            _limits.fraction(part, margin)
            expect_that(f"{part}, {margin}", False)
        except ValueError as error:
            expect_that(str(error), "is no part of a device" in str(error))
    try:
        _limits.fraction(0.5, "2%")
        expect_that("a margin of words", False)
    except TypeError as error:
        expect_that(str(error), "margin='2%' is no number: write the part of a device" in str(error))


def unlimited(_):
    """This process, which was started without the library, is told so."""
    try:
        _limits.require_preloaded("this test", "start it otherwise")
        expect_that("a limit here", False)
    except ration_gpu.RationError as error:
        expect("words", str(error), "this test would have no limit: it was started without libration.so in LD_PRELOAD; start it otherwise")


def followed(folder):
    """A log is read while it is written: lines that are not whole yet, and lines that were filled up after they were read."""
    path = pathlib.Path(folder) / "log"
    log = _log.Log(path)
    log.read()
    alloc = {"t": "alloc", "seq": 3, "dev": 0, "kind": "device", "addr": "0x10", "size": 3 << 20, "stack": 2}
    line = "\n".join(map(json.dumps, ({"t": "frame", "id": 1, "mod": 0, "fn": "f", "file": f"{os.getcwd()}/x.py", "line": 7},
                                      {"t": "stack", "id": 2, "frame": 1, "parent": 0}, alloc))) + "\n"
    path.write_text(line[:-20])
    log.read()
    expect("a part of a line", log.live, {})
    path.write_text(line)
    log.read()
    expect("places", _log.by_place(log.live.values()), [f"3MiB ({3 << 20} bytes) in 1 block on device 0 from x.py:7 in f"])
    oom = {"t": "oom", "seq": 4, "dev": 0, "api": "cuMemAlloc_v2", "req": 100, "reason": "group", "used": 3 << 20, "limit": None,
           "device_free": 0, "group": "lab", "group_limit": 4 << 20, "group_reserved": 4 << 20}
    path.write_text(line[:-1] + "   \n" + json.dumps(oom) + "\n" + json.dumps({"t": "free", "seq": 5, "dev": 0, "addr": "0x10"}) + "\n")
    log.read()
    expect("held", (log.live, [len(refusal.held) for refusal in log.refusals]), ({}, [1]))
    expect_that(log.refusals[0].words(), "was refused (group): the process used 3MiB" in log.refusals[0].words())
    expect_that(log.refusals[0].words(), "its group lab held 4MiB (4194304 bytes) of 4MiB (4194304 bytes)" in log.refusals[0].words())


os.environ["PATH"] = f"{BUILD / 'bin'}:{os.environ['PATH']}"
main({"where": where, "limited": limited, "other_settings": other_settings, "preloads": preloads, "mistakes": mistakes,
      "without_group": without_group, "held": held, "parts": parts, "unlimited": unlimited, "followed": followed})
