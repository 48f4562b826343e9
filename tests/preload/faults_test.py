#!/usr/bin/env python3
"""RATION_FAIL refuses what its rules say, by every API and in every mode, and marks it in the log."""
import subprocess

from harness import BUILD, MIB, PROGRAMS, clean_environment, driver_folder, expect, expect_that, main, of_type, run

APIS = ("cuMemAllocManaged", "cuMemCreate", "cuMemAllocAsync", "cuMemAllocAsync_ptsz", "from the default pool",
         "from a pool of its own", "cuArrayCreate_v2", "cuArray3DCreate_v2", "cuMipmappedArrayCreate", "cuMemAlloc", "cuMemAllocPitch")
SERVED = ("cuMemCreate on the host", "cuMemAllocHost")
MODES = {"pool": {}, "slabs": {"RATION_BACKING": "slab"}, "direct": {"RATION_MODE": "direct"}, "async": {"RATION_MODE": "async"}}


def code(line):
    return line.rsplit(" ", 1)[-1]


def steps(folder, rules, *ops, **settings):
    done = run("steps", "init", "context=0", *ops, folder=folder, RATION_FAIL=rules, SIMCUDA_DEVICES="1GiB", **settings)
    expect("status, stderr", (done.status, done.err), (0, ""))
    return done.out.splitlines()[2:], done.logs["run.jsonl"]


def nth(settings):
    """The third alone; each as often as the program asks for it, and the log says which."""
    def case(folder):
        lines, records = steps(folder, "nth=3", *["alloc=1m"] * 5, **settings)
        expect("codes", [code(line) for line in lines], ["0", "0", "2", "0", "0"])
        refusals = of_type(records, "oom")
        expect("refusals", [(each["reason"], each["api"], each["req"]) for each in refusals], [("fault", "cuMemAlloc_v2", MIB)])
        expect("in the end", of_type(records, "end")[0]["ooms"], 1)
    return case


def hits(folder):
    """What a pool would serve at once is counted, too, without a log."""
    done = run("steps", "init", "context=0", *["alloc=1m", "free"] * 4, "alloc=1m", RATION_FAIL="every=2", SIMCUDA_DEVICES="1GiB",
               RATION_PREALLOCATE_AFTER="0")
    expect("codes", [code(line) for line in done.out.splitlines() if line.startswith("alloc")],
           ["0", "2", "0", "2", "0"])


def api(name):
    """Every way to device memory is refused, with its parameter as the driver leaves it, and what is no device memory is not."""
    def case(folder):
        done = run("apis", name, "2", folder=folder, RATION_FAIL="above=0", SIMCUDA_DEVICES="1GiB")
        served = name in SERVED
        expect("status", done.status, 0)
        expect("the first line", done.out.split(" held")[0], f"blocks={2 if served else 0} code={0 if served else 2} as_driver=1")
        reasons = {each["reason"] for each in of_type(done.logs["run.jsonl"], "oom")}
        expect("reasons", reasons, set() if served else {"fault"})
    return case


def ration_run(*options, steps=("alloc=1m", "alloc=1m")):
    environment = clean_environment() | {"DRIVER_FOLDER": str(driver_folder("sim"))}
    return subprocess.run([BUILD / "bin/ration", "run", "--sim", "1GiB", *options, "--", PROGRAMS / "steps", "init", "context=0",
                           *steps], env=environment, capture_output=True, text=True, check=False)


def from_the_command(_):
    done = ration_run("--fail", "nth=2")
    expect("status", done.returncode, 0)
    expect("codes", [code(line) for line in done.stdout.splitlines()[2:]], ["0", "2"])
    expect_that(f"the summary: {done.stderr}", "1 refused: 1 on purpose (--fail); largest refused: 1MiB requested; not freed" in done.stderr)


def wrong(folder):
    done = ration_run("--fail", "size=3")
    expect("status, stdout", (done.returncode, done.stdout), (125, ""))
    expect_that(f"words of {done.stderr}", "unknown condition size" in done.stderr)
    done = run("steps", "init", "context=0", "alloc=1m", RATION_FAIL="nth=0", SIMCUDA_DEVICES="1GiB")
    expect("a variable that cannot be read refuses nothing", code(done.out.splitlines()[-1]), "0")
    expect_that(f"one line says so: {done.err!r}", "RATION_FAIL" in done.err and len(done.err.splitlines()) == 1)


main({f"the third, {mode}": nth(settings) for mode, settings in MODES.items()}
     | {f"by {name}": api(name) for name in APIS + SERVED}
     | {"hits": hits, "ration run --fail": from_the_command, "wrong rules": wrong})
