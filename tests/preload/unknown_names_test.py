#!/usr/bin/env python3
"""Functions that a program asks the driver for and the catalogue lacks: counted once each, in the log's end, in the
summary of `ration run`, and explained by `ration report`."""
import json
import pathlib
import subprocess

import harness
from harness import BUILD, HANG, clean_environment, driver_folder, expect, expect_that, main, run, state_folder

RATION = BUILD / "bin/ration"
NEWER = {"sim": "unheard_of", "SIMCUDA_UNHEARD_OF": "1", "RATION_LIMIT": "1GiB"}
A_HUNDRED = "cuMemUnheardOf_a" + "234567890" + "1234567890" * 7 + "12345"
ONE_MORE = "cuMemUnheardOf_b" + "2345678901" * 8 + "23456"
HARMLESS = ["handle:cuInit", "handle:cuMemAlloc_v2", "handle:cuGLGetDevices_v2", "default:cuMemFree_v2", "handle:cuDeviceGetCount",
            "handle:cuNoSuchFunction", "default:cuNoSuchFunction", "next:cuNoSuchFunction", "handle:strlen", "13000:cuMemAlloc",
            "13000:cuNoSuchFunction", "12000/2:cuMemcpyHtoDAsync", "13000:cuStreamBeginCapture"]


def asked(folder, *steps, threads=1, order="before", found=None, **settings):
    """The end of the log."""
    done = run("unknown_names", str(threads), order, *steps, folder=folder, **{**NEWER, **settings})
    expect(f"status, having said {done.err}", done.status, 0)
    expect("stderr", done.err, "")
    if found is not None:
        expect("stdout", done.out, f"found={found}\n")
    return done.logs["run.jsonl"][-1]


def expect_names(end, count, names):
    expect("unknown", (end["unknown_names"], sorted(end["unknown"])), (count, sorted(names)))


def by(order, way):
    """One name, in one way, before or after the driver is known to be there."""
    def case(folder):
        end = asked(folder, f"{way}:cuMemUnheardOf007", f"{way}:cuMemUnheardOf007", f"{way}:cuDeviceUnheardOf", order=order, found=3)
        expect_names(end, 2, ["cuMemUnheardOf007", "cuDeviceUnheardOf"])
        expect("versions", (end["unknown_versions"], end["newer"]), (0, []))
    return case


def once_in_all_ways(folder):
    ways = ("handle", "default", "next", "version", "13000", "12000")
    end = asked(folder, *(f"{way}:cuMemUnheardOf001" for way in ways), found=len(ways))
    expect_names(end, 1, ["cuMemUnheardOf001"])


def harmless(folder):
    for order in ("before", "after"):
        expect_names(asked(folder, *HARMLESS, order=order), 0, [])
    # A driver that has none of these: what it does not answer is not counted.
    end = asked(folder, "handle:cuMemUnheardOf001", "default:cuMemUnheardOf002", "13000:cuMemUnheardOf003", sim="sim",
                SIMCUDA_UNHEARD_OF="", found=0)
    expect_names(end, 0, [])


def of_another_form(folder):
    names = ["cudaUnheardOf", "cu_UnheardOf", ONE_MORE, A_HUNDRED]
    end = asked(folder, *(f"{way}:{name}" for way in ("handle", "default", "13000") for name in names), "13000:cuMem%UnheardOf",
                '13000:cuMem"UnheardOf', "13000:UnheardOf", "13000:cuMem UnheardOf", found=16)
    expect("lengths", (len(A_HUNDRED), len(ONE_MORE)), (100, 101))
    expect_names(end, 1, [A_HUNDRED])


def many(way, order, threads):
    def case(folder):
        end = asked(folder, f"{way}:cuMemUnheardOf+1000", threads=threads, order=order, found=1000 * threads)
        expect("count", end["unknown_names"], 1000)
        expect("names in the log", (len(end["unknown"]), len(set(end["unknown"]))), (64, 64))
        expect_that(f"{end['unknown']}", all(name.startswith("cuMemUnheardOf") for name in end["unknown"]))
    return case


def early(folder):
    """Without a driver that is known, names are kept until one is: as many as are kept at all."""
    expect("count", asked(folder, "default:cuMemUnheardOf+1000", "next:cuMemUnheardOf+1000")["unknown_names"], 1000)


def newer_versions(folder):
    end = asked(folder, "14000:cuMemAlloc", "14000:cuMemAlloc", "14010:cuMemAlloc", "14000:cuStreamBeginCapture", "14000:cuDeviceGetCount",
                "13000:cuMemFree", found=6)
    expect("versions", (end["unknown_versions"], end["newer"]), (4, ["cuMemAlloc@14000", "cuMemAlloc@14010", "cuStreamBeginCapture@14000"]))
    expect_names(end, 0, [])


def nothing_without_a_log(_):
    done = run("unknown_names", "4", "before", "handle:cuMemUnheardOf+1000", **NEWER)
    expect("ended", (done.status, done.out, done.err), (0, "found=4000\n", ""))


def disabled(_):
    done = run("unknown_names", "1", "before", "handle:cuMemUnheardOf+10", "13000:cuMemUnheardOf+10", RATION_DISABLE="1", **NEWER)
    expect("ended", (done.status, done.out, done.err), (0, "found=20\n", ""))


def ration(*arguments, status=0, **settings):
    environment = clean_environment() | {"RATION_STATE_DIR": state_folder(), "SIMCUDA_UNHEARD_OF": "1"}
    environment |= {"LD_LIBRARY_PATH": f"{driver_folder('unheard_of')}:{BUILD}/lib/ration/sim"} | settings
    done = subprocess.run([RATION, *map(str, arguments)], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=HANG, check=False)
    expect(f"status of {arguments}, stderr {done.stderr!r}", done.returncode, status)
    return done


def summary_of(*steps, status=0, order="before", options=()):
    done = ration("run", "--limit", "1GiB", *options, "--", harness.PROGRAMS / "unknown_names", "1", order, *steps, status=status)
    return [line for line in done.stderr.splitlines() if "does not know" in line]


def summary(folder):
    expect("nothing unknown", summary_of("handle:cuInit"), [])
    expect("nothing that takes memory", summary_of("handle:cuDeviceUnheardOf", "13000:cuDeviceUnheardOf"), [])
    began = "ration: asked for {} that this Ration does not know, or not in that version, and that may take memory: {} "
    told = began + "(run again with --log FILE, and `ration report FILE` explains)"
    expect("one", summary_of("handle:cuMemUnheardOf007", "handle:cuDeviceUnheardOf"), [told.format("1 function", "cuMemUnheardOf007")])
    expect("a version", summary_of("14000:cuMemAlloc"), [told.format("1 function", "cuMemAlloc@14000")])
    expect("with a log", summary_of("handle:cuMemUnheardOf007", options=("--log", f"{folder}/of_summary.jsonl")),
           [f"{began}(`ration report LOG` explains)".format("1 function", "cuMemUnheardOf007")])
    hundreds = told.format("1000 functions", "cuMemUnheardOf000, cuMemUnheardOf001, cuMemUnheardOf002 and 997 more")
    for order, status in (("before", 0), ("after", 0), ("killed", 137)):
        expect(f"a thousand, {order}", summary_of("handle:cuMemUnheardOf+1000", order=order, status=status), [hundreds])


def more_than_are_counted(folder):
    log, names = f"{folder}/many.jsonl", "cuMemUnheardOf000, cuMemUnheardOf001, cuMemUnheardOf002"
    steps = ("handle:cuMemUnheardOf+1000", "13000:cuDeviceUnheardOf+1000")
    line, = summary_of(*steps, options=("--log", log))
    expect_that(line, line.startswith("ration: asked for at least 1000 functions ") and f": {names} and at least 997 more (" in line)
    text = ration("report", log).stdout
    expect_that(text, "at least 1536 functions that this Ration does not know:" in text and "\n    and at least 1472 more\n" in text)


def reported(folder):
    asked(folder, "handle:cuMemUnheardOf007", "handle:cuDeviceUnheardOf", "14000:cuMemAlloc")
    log = pathlib.Path(folder) / "run.jsonl"
    text = ration("report", log).stdout
    for part in ("\n  2 functions that this Ration does not know:\n", "\n    cuMemUnheardOf007 ", "\n    cuDeviceUnheardOf\n", "\n    cuMemAlloc@14000 "):
        expect_that(f"{text!r} lacks {part!r}", part in text)
    shown, = json.loads(ration("report", log, "--json").stdout)["logs"]
    meta = json.loads(log.read_text().splitlines()[0])
    wanted = {"driver": meta["driver"], "version": meta["ver"], "unknown_names": 2, "unknown": ["cuMemUnheardOf007", "cuDeviceUnheardOf"],
              "unknown_versions": 1, "newer": ["cuMemAlloc@14000"], "may_take_memory": ["cuMemUnheardOf007", "cuMemAlloc@14000"]}
    expect("json", {key: shown[key] for key in wanted}, wanted)
    asked(folder, "handle:cuInit")
    expect_that("nothing unknown", "does not know" not in ration("report", log).stdout)


cases = {f"by {way}, {order}": by(order, way) for way in ("handle", "default", "next", "version", "13000") for order in ("before", "after")}
cases |= {f"a thousand by {way}, {order}, {threads} threads": many(way, order, threads)
          for way in ("handle", "13000") for order in ("before", "after") for threads in (1, 8)}
main(cases | {
    "a name counts once, in whatever ways it was asked for": once_in_all_ways,
    "what is known, and what the driver lacks": harmless,
    "names of another form": of_another_form,
    "a thousand before there is a driver": early,
    "known names in versions that are not": newer_versions,
    "without a log": nothing_without_a_log,
    "RATION_DISABLE": disabled,
    "the summary of ration run": summary,
    "more names than are counted": more_than_are_counted,
    "ration report": reported,
})
