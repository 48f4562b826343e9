#!/usr/bin/env python3
"""Each way to build, instantiate and run a graph that allocates more than the limit, on its own (programs/graph_ways.cc),
and graphs whose codes are those of a device as large as the limit (programs/graph_codes.cc)."""
import pathlib
import tempfile

from harness import GIB, MIB, SANITIZED, expect, expect_that, main, of_type, read_log, run

LIMIT = 256 * MIB
BUILDS = ("captured", "cuGraphAddMemAllocNode", "cuGraphAddNode", "cuGraphAddNode_v2", "cuGraphAddNode_v3")
INSTANTIATES = ("cuGraphInstantiate", "cuGraphInstantiate_v2", "cuGraphInstantiateWithFlags", "cuGraphInstantiateWithParams",
                "cuGraphInstantiateWithParams_ptsz")
NATIVELY = ("nested", "nested too large", "nested on a device of its size", "graphs in turns", "freed beside", "freed around",
            "rounded", "launched again", "uploaded again", "launched too often", "reset", "full at first", "never fits", "wrong")
LIVE_AT_LAST = {"freed beside": 1, "freed around": 0, "reset": 1}  # blocks
RUNS = ("cuGraphLaunch", "cuGraphLaunch_ptsz", "cuGraphUpload", "cuGraphUpload_ptsz")


def lines(build, instantiate, how, **settings):
    done = run("graph_ways", build, instantiate, how, SIMCUDA_DEVICES="2GiB", RATION_LIMIT=LIMIT, **settings)
    expect(f"status, {done.err[-300:]!r}", done.status, 0)
    return done.out.splitlines()


def refused_when_run(build, instantiate, how):
    return lambda _: expect("codes", lines(build, instantiate, how), ["instantiated 0", "run 2", "graphs hold 0"])


def refused_with_its_upload(_):
    expect("codes", lines("captured", "upload", "cuGraphLaunch"), ["instantiated 2", "graphs hold 0"])


def destroyed(_):
    reused, *codes = lines("captured", "cuGraphInstantiateWithFlags", "cuGraphExecDestroy")
    expect("a handle is used again", reused == "same handle 1" or SANITIZED, True)  # a sanitizer keeps what was freed
    expect("codes", codes, ["launched 0", "graphs hold 0"])


def updated(how):
    return lambda _: expect("codes", lines("captured", "cuGraphInstantiateWithFlags", how),
                            ["updated 0", "launched 2", "graphs hold 0"])


def trimmed(_):
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        expect("codes", lines("captured", "cuGraphInstantiateWithFlags", "cuDeviceGraphMemTrim", RATION_LOG=log),
               ["launched 0", "trimmed 0", "graphs hold 0"])
        samples = of_type(read_log(log), "sample")
        expect_that(samples, [sample["api"] for sample in samples] == ["cuGraphLaunch", "cuDeviceGraphMemTrim"])


def as_natively(which):
    def case(_):
        native = run("graph_codes", which, SIMCUDA_DEVICES="1GiB", SIMCUDA_CONTEXT_BYTES=0, preload=None)
        expect("status without Ration", native.status, 0)
        for mode in ("pool", "direct"):
            with tempfile.TemporaryDirectory() as folder:
                log = pathlib.Path(folder, "log")
                done = run("graph_codes", which, SIMCUDA_DEVICES="4GiB", SIMCUDA_CONTEXT_BYTES=0, RATION_LIMIT=GIB,
                           RATION_MODE=mode, RATION_LOG=log)
                expect(f"status, {done.err[-300:]!r}", done.status, 0)
                expect(f"codes in mode {mode}", done.out.splitlines(), native.out.splitlines())
                records = read_log(log)
                expect(f"refusals in mode {mode}", len(of_type(records, "oom")),
                       sum(line.endswith(" 2") for line in native.out.splitlines()))
                if which in LIVE_AT_LAST:
                    expect("live at last", sum(device["count"] for device in of_type(records, "end")[0]["live"]), LIVE_AT_LAST[which])
    return case


main({f"built by {build}": refused_when_run(build, "cuGraphInstantiateWithFlags", "cuGraphLaunch") for build in BUILDS}
     | {f"instantiated by {way}": refused_when_run("captured", way, "cuGraphLaunch") for way in INSTANTIATES}
     | {f"run by {way}": refused_when_run("captured", "cuGraphInstantiateWithFlags", way) for way in RUNS}
     | {f"changed by {way}": updated(way) for way in ("cuGraphExecUpdate", "cuGraphExecUpdate_v2")}
     | {f"as natively: {which}": as_natively(which) for which in NATIVELY}
     | {"uploaded at the instantiation": refused_with_its_upload, "destroyed": destroyed, "trimmed": trimmed})
