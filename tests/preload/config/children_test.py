#!/usr/bin/env python3
"""Settings that change between a parent and its children: each process reads them once, at its own first CUDA call. Where
a variable is absent then, it counts as when the program was started; a forked child has the start of its parent."""
import json
import pathlib
import re
import subprocess

from harness import BUILD, GIB, MIB, PROGRAMS, clean_environment, driver_folder, expect, expect_that, main, run

STEPS = PROGRAMS / "steps"
DEVICE = 4 * GIB
MACHINE = {"SIMCUDA_DEVICES": "4GiB", "SIMCUDA_CONTEXT_BYTES": str(MIB)}
LOOK = "init context=0 query"  # shows the total, and so the limit of the process
NONE, TWO = "set=RATION_LIMIT", "set=RATION_LIMIT=2GiB"


def another(ops=LOOK):
    """A child that executes another program."""
    return f"child:exec={STEPS} {ops}"


def forked(ops=LOOK):
    return f"child:{'+'.join(ops.split())}"


def totals(folder, *steps, **settings):
    settings = {key: value for key, value in (MACHINE | {"RATION_LIMIT": "1GiB"} | settings).items() if value is not None}
    done = run("steps", *steps, RATION_STATE_DIR=f"{folder}/state", HOME=folder, XDG_CONFIG_HOME=folder, **settings)
    expect_that(f"status {done.status}: {done.out} {done.err}", done.status == 0 and done.err == "")
    wrong = [line for line in done.out.splitlines() if not re.search(r"(: 0|status 0)$", line) and "free_null" not in line]
    expect(f"what failed of {done.out}", wrong, [])
    return [int(number) for number in re.findall(r" total=(\d+)", done.out)]


def shown(*steps, wanted, **settings):
    return lambda folder: expect("totals", totals(folder, *steps, **settings), wanted)


PARENT = LOOK.split()  # a parent that has made its first call
BOUND = ["free_null"]  # a call before cuInit: what the look-ups of a runtime do before a fork

CASES = {
    "a process has the settings from before its first call": shown(TWO, *PARENT, wanted=[2 * GIB]),
    "later changes have no effect on it": shown(*PARENT, TWO, "query", NONE, "query", "set=RATION_DISABLE=1", "query", "context=0", "query",
                                             wanted=[GIB] * 5),
    "another program reads its own settings": shown(*PARENT, TWO, another(), "query", wanted=[GIB, 2 * GIB, GIB]),
    "a child without a limit": shown(*PARENT, NONE, another(), "query", wanted=[GIB, DEVICE, GIB]),
    "a disabled child": shown(*PARENT, "set=RATION_DISABLE=1", another(), "query", wanted=[GIB, DEVICE, GIB]),
    "a child of a disabled parent": shown(*PARENT, "set=RATION_DISABLE", another(), "query", RATION_DISABLE="1", wanted=[DEVICE, GIB, DEVICE]),
    "RATION_DISABLE=0 does not disable": shown(*PARENT, "set=RATION_DISABLE=0", another(), "query", RATION_DISABLE="1", wanted=[DEVICE, GIB, DEVICE]),
    "a third-party variable": shown(*PARENT, NONE, "set=XLA_PYTHON_CLIENT_MEM_FRACTION=0.5", another(), "query",
                                      wanted=[GIB, 2 * GIB, GIB]),
    "the shown size": shown(*PARENT, "set=RATION_SHOW_LIMIT=false", another(), "query", wanted=[GIB, DEVICE, GIB]),
    "a child forked before the first call": shown(TWO, forked(), "set=RATION_DISABLE=1", forked(), "set=RATION_DISABLE",
                                                          NONE, forked(), "set=RATION_LIMIT=3GiB", *PARENT,
                                                          wanted=[2 * GIB, DEVICE, GIB, 3 * GIB]),
    "a child forked after the look-ups": shown(*BOUND, TWO, forked(), NONE, forked(), *PARENT,
                                                         wanted=[2 * GIB, GIB, GIB]),
    "a child of a child": shown(*PARENT, TWO, another(f"set=RATION_LIMIT=3GiB 'child:exec={STEPS} {LOOK}' {LOOK}"), "query",
                                wanted=[GIB, 3 * GIB, 3 * GIB, GIB]),
    "a disabled parent forks a disabled child": shown(*BOUND, "set=RATION_DISABLE", forked(), RATION_DISABLE="1", wanted=[DEVICE]),
}


def inert_once_bound(folder):
    """A child that its parent disables has no limit, and the library allocates nothing for it."""
    trace = pathlib.Path(folder) / "trace"
    seen = totals(folder, *BOUND, "set=RATION_DISABLE=1", forked(f"{LOOK} alloc=100m alloc=2000m query"), SIMCUDA_TRACE=trace)
    expect("totals", seen, [DEVICE, DEVICE])
    taken = [line.split()[2] for line in trace.read_text().splitlines() if line.startswith("cuMemAlloc_v2 0")]
    expect("taken from the driver", taken, [str(100 * MIB), str(2000 * MIB)])


def a_file_changes(folder):
    """A child reads the file at its own first call; its variables outrank the file."""
    file = pathlib.Path(folder) / "ration/config.json"
    file.parent.mkdir()
    file.write_text('{"limit": "3GiB"}')
    other = f"child:exec=cp {folder}/other.json {file}"
    (file.parent.parent / "other.json").write_text('{"limit": "2GiB", "show_limit": true}')
    seen = totals(folder, *PARENT, other, "query", another(), "set=RATION_LIMIT=1GiB", another(), RATION_LIMIT=None)
    expect("totals", seen, [3 * GIB, 3 * GIB, 2 * GIB, GIB])


def under_run(folder):
    """The source of a setting is the option of `ration run` until a program sets the variable; then it is the environment."""
    log = pathlib.Path(folder) / "%p.jsonl"
    environment = clean_environment() | MACHINE | {"LD_LIBRARY_PATH": str(driver_folder("sim")), "HOME": folder}
    done = subprocess.run([BUILD / "bin/ration", "run", "--limit", "1GiB", "--", STEPS, *PARENT, f"set=RATION_LOG={log}", another(), TWO,
                           another(), f"child:exec={BUILD}/bin/ration run --limit 3GiB -- {STEPS} {LOOK}"],
                          env=environment, capture_output=True, text=True, check=False)
    expect(f"status, having said {done.stderr}", done.returncode, 0)
    expect("totals", [int(number) for number in re.findall(r" total=(\d+)", done.stdout)], [GIB, GIB, 2 * GIB, 3 * GIB])
    heads = [json.loads(path.read_text().splitlines()[0]) for path in pathlib.Path(folder).glob("*.jsonl")]
    reported = sorted((head["settings"]["limit"]["value"], head["settings"]["limit"]["source"]) for head in heads)
    expect("sources", reported, [("1GiB", "flag"), ("2GiB", "environment"), ("3GiB", "flag")])


def nvml_later(folder):
    """The first NVML query comes after the program has changed its variables for its children."""
    done = run("monitor", "init", "context=0", "set=RATION_DISABLE:1", "set=RATION_LIMIT:2GiB", "start", "index=0",
               RATION_STATE_DIR=f"{folder}/state", RATION_LIMIT="1GiB", **MACHINE)
    reported = [json.loads(line) for line in done.out.splitlines()]
    expect("total", [answer["v1"][0] for answer in reported if answer["op"] == "index=0"], [GIB])


main(CASES
     | {"disabled after the look-ups": inert_once_bound, "a file changes": a_file_changes, "under ration run": under_run,
        "NVML after CUDA": nvml_later})
