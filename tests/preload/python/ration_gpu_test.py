#!/usr/bin/env python3
"""The Python package ration_gpu, over this build: ration_gpu_test.py SOURCE"""
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(SOURCE / "tests/preload"), str(SOURCE / "shim/python")]

import ration_gpu  # noqa: E402
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
    raised(ValueError, "unknown setting 'limt'", "limit", limt="1GiB", environment=given)
    raised(ValueError, "one of pool, async, direct", mode="fast", environment=given)
    raised(ValueError, "--sim many", sim="many", environment=given)


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
        process.kill()
        process.wait()
    os.close(writer)
    expect("held", [(row["pid"], row["program"], row["limit"]) for row in seen], [(process.pid, str(PROGRAMS / "counted"), GIB)])


os.environ["PATH"] = f"{BUILD / 'bin'}:{os.environ['PATH']}"
main({"where": where, "limited": limited, "other_settings": other_settings, "preloads": preloads, "mistakes": mistakes, "held": held})
